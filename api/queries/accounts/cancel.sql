-- The given end of the period wins, else the known one, else the end of the paid month, else of the calendar month
-- (UTC). No row where the account is so already.
update accounts.accounts
set paid_until = coalesce($2, paid_until, accounts.period_end(period_start, now()),
    (date_trunc('month', now() at time zone 'utc') + interval '1 month') at time zone 'utc'),
  next_tier = 'free'
where id = $1 and (next_tier <> 'free' or paid_until is null or paid_until <> coalesce($2, paid_until))
returning tier, paid_until, next_tier
