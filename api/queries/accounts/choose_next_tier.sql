-- Sets $2 as the next tier of account $1, which applies after the paid month. No row if nothing changes.
update accounts.accounts
set next_tier = $2,
  paid_until = coalesce(paid_until, accounts.period_end(period_start, now()),
    (date_trunc('month', now() at time zone 'utc') + interval '1 month') at time zone 'utc')
where id = $1 and (next_tier <> $2 or paid_until is null)
returning tier, paid_until, next_tier
