-- A known end of the period stays; an unknown one is the given one, else the end of the paid month, else of the
-- calendar's, UTC.
update accounts.accounts
set paid_until = coalesce($2, paid_until, accounts.period_end(period_start, now()),
    (date_trunc('month', now() at time zone 'utc') + interval '1 month') at time zone 'utc'),
  next_tier = 'free'
where id = $1
returning tier, paid_until, next_tier
