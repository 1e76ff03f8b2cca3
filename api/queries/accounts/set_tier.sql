update accounts.accounts
set tier = $2, paid_until = $3, next_tier = 'free', period_start = null, wanted_tier = null, wanted_at = null
where id = $1
returning tier, paid_until, next_tier
