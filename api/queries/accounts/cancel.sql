-- A known end of the period stays; an unknown one is the given one, else the end of the month, UTC.
update accounts.accounts
set paid_until = coalesce($2, paid_until, (date_trunc('month', now() at time zone 'utc') + interval '1 month') at time zone 'utc')
where id = $1
returning tier, paid_until
