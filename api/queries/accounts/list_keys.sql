select k.id, k.name, k.last_four, k.created_at, k.expires_at, k.rate_per_minute,
  case when k.revoked_at is not null then 'deleted' when k.expires_at <= now() then 'expired' else 'active' end as status
from accounts.api_keys k where k.account_id = $1
order by k.id
