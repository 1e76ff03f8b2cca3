-- At most 200 keys of account $1, in order of creation. Active keys are preferred, then newer keys. Keys deleted more
-- than 30 days ago are left out. The last use of a key is on its last day with calls.
with kept as (
  select k.*, k.revoked_at is null and (k.expires_at is null or k.expires_at > now()) as active
  from accounts.api_keys k
  where k.account_id = $1 and (k.revoked_at is null or k.revoked_at > now() - interval '30 days')
  order by active desc, k.id desc limit 200
)
select k.id, k.name, k.kind, k.last_four, k.created_at, k.expires_at, k.rate_per_minute,
  case when k.active then 'active' when k.revoked_at is not null then 'deleted' else 'expired' end as status, u.last_used
from kept k
left join lateral (
  select max(c.last_at) as last_used from accounts.calls c
  where c.account_id = k.account_id and c.key_id = k.id and c.day = (
    select max(d.day) from accounts.calls d where d.account_id = k.account_id and d.key_id = k.id
  )
) u on true
order by k.id
