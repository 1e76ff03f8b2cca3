-- Sets the tier $2 of account $1, paid until $3. No row if nothing changes.
update accounts.accounts
set tier = $2, paid_until = $3, next_tier = 'free', period_start = null, wanted_tier = null, wanted_at = null
where id = $1 and (tier, paid_until, next_tier, period_start, wanted_tier)
  is distinct from ($2, $3, 'free', null::timestamptz, null::text)
returning tier, paid_until, next_tier
