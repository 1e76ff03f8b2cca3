-- Sets the tier `free` as the next tier of account $1. The paid period ends at $2, else at its stored end, else at the
-- end of the paid month, else at the end of the calendar month (UTC). No row if nothing changes.
update accounts.accounts
set paid_until = coalesce($2, paid_until, accounts.period_end(period_start, now()),
    (date_trunc('month', now() at time zone 'utc') + interval '1 month') at time zone 'utc'),
  next_tier = 'free'
where id = $1 and (next_tier <> 'free' or paid_until is null or paid_until <> coalesce($2, paid_until))
returning tier, paid_until, next_tier
