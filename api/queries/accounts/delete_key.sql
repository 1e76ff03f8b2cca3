update accounts.api_keys k set revoked_at = now()
from accounts.accounts a
where a.id = k.account_id and lower(a.email) = $1 and a.deleted_at is null
  and k.revoked_at is null and (k.id::text = $2 or k.name = $2)
