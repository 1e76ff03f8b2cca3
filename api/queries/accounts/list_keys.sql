select k.id, k.name, k.last_four, k.created_at, k.expires_at, k.rate_per_minute,
  case when k.revoked_at is not null then 'deleted' when k.expires_at <= now() then 'expired' else 'active' end as status,
  (select max(c.last_at) from accounts.calls c where c.account_id = k.account_id and c.key_id = k.id) as last_used
from accounts.api_keys k where k.account_id = $1
order by k.id
