-- Calls of the account go on meanwhile: its limits are another row.
select a.id, a.email, a.tier, a.paid_until, a.next_tier,
  (select count(*) from accounts.api_keys k
   where k.account_id = a.id and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())) as active_keys
from accounts.accounts a
where lower(a.email) = $1 and a.deleted_at is null
for update of a
