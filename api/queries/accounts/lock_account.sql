-- Locks the account of the address $1. API calls of the account continue, because its limits are another row. Only the
-- locked row is read after the wait for the lock. A sub-select would read an older snapshot, so counts are separate
-- statements after this one.
select a.id, a.email, a.tier, a.paid_until, a.next_tier
from accounts.accounts a
where lower(a.email) = $1 and a.deleted_at is null
for update of a
