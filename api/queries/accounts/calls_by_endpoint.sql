-- Calls of account $1 per endpoint and key, from day $2 on, most calls first.
select c.endpoint, coalesce(k.name, 'a deleted key') as key, coalesce(k.last_four, '') as last_four,
  sum(c.calls)::bigint as calls,
  coalesce(sum(c.calls) filter (where c.outcome = 'answered'), 0)::bigint as answered, max(c.last_at) as last_at
from accounts.calls c left join accounts.api_keys k on k.id = c.key_id and k.account_id = c.account_id
where c.account_id = $1 and c.day >= $2
group by c.endpoint, k.name, k.last_four order by calls desc, c.endpoint, key limit 50
