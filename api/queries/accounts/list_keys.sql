select k.id, k.name, k.last_four, k.created_at, k.expires_at,
  case when k.revoked_at is not null then 'deleted' when k.expires_at <= now() then 'expired' else 'active' end as status
from accounts.api_keys k join accounts.accounts a on a.id = k.account_id
where lower(a.email) = $1 and a.deleted_at is null
order by k.id
