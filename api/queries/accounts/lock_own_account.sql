-- Locks the account $1 of a session, as lock_account.sql locks the account of an address.
select a.id, a.email, a.tier, a.paid_until, a.next_tier
from accounts.accounts a
where a.id = $1 and a.deleted_at is null
for update of a
