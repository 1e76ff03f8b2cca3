-- Gives back calls that failed on the server's side, within the month they were counted in.
update accounts.limiter l set used = greatest(0, l.used - $2)
where l.account_id = $1 and l.month = date_trunc('month', clock_timestamp() at time zone 'utc')::date
