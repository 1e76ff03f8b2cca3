-- Key $2 of account $1. No row if another account has the key.
select k.id, k.name, k.kind, k.last_four, k.created_at, k.expires_at, k.rate_per_minute,
  case when k.revoked_at is not null then 'deleted' when k.expires_at <= now() then 'expired' else 'active' end as status,
  u.last_used
from accounts.api_keys k
left join lateral (
  select max(c.last_at) as last_used from accounts.calls c
  where c.account_id = k.account_id and c.key_id = k.id and c.day = (
    select max(d.day) from accounts.calls d where d.account_id = k.account_id and d.key_id = k.id
  )
) u on true
where k.account_id = $1 and k.id = $2
