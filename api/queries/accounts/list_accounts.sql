select a.id, a.email, a.tier, a.paid_until, a.next_tier, a.wanted_tier, a.disabled_at, a.created_at,
  accounts.period_end(a.period_start, now()) as period_end, t.tier as effective_tier, t.monthly_quota,
  (select count(*) from accounts.api_keys k
   where k.account_id = a.id and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())) as active_keys,
  case when l.month = date_trunc('month', now() at time zone 'utc')::date then l.used else 0 end as used_this_month
from accounts.accounts a
join accounts.tiers t on t.tier = case when a.paid_until is null or a.paid_until > now() then a.tier else a.next_tier end
join accounts.limiter l on l.account_id = a.id
where a.deleted_at is null
order by a.email
