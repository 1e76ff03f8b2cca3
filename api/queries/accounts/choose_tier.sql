-- Sets the tier $2 of account $1 at once, paid by the month. No row if nothing changes.
update accounts.accounts
set tier = $2, paid_until = null, next_tier = 'free', wanted_tier = null, wanted_at = null,
  period_start = case when $2 = tier then coalesce(period_start, now()) else now() end
where id = $1 and (tier, paid_until, next_tier, wanted_tier, period_start is null)
  is distinct from ($2, null::timestamptz, 'free', null::text, false)
returning tier, paid_until, next_tier
