-- Usage of the account of address $1: calls in the current month, and calls that are available now.
select t.tier, t.rate_per_minute, t.burst, t.monthly_quota,
  case when m.month > l.month then 0 else l.used end as used,
  greatest(m.month, l.month) as month,
  (greatest(m.month, l.month) + interval '1 month') at time zone 'utc' as resets_at,
  accounts.refill(l.tokens, l.cap, t.burst, t.rate_per_minute, now() - l.at) / 60000000 as available
from accounts.accounts a
join accounts.tiers t on t.tier = case when a.paid_until is null or a.paid_until > now() then a.tier else a.next_tier end
join accounts.limiter l on l.account_id = a.id
cross join (select date_trunc('month', now() at time zone 'utc')::date as month) m
where lower(a.email) = $1 and a.deleted_at is null
