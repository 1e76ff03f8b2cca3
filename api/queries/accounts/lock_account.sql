-- Calls of the account go on meanwhile: its limits are another row. Only the locked row is as new as the lock: a sub-select
-- here would read the snapshot from before the wait. Counts are separate statements after this one.
select a.id, a.email, a.tier, a.paid_until, a.next_tier
from accounts.accounts a
where lower(a.email) = $1 and a.deleted_at is null
for update of a
