-- Gives back a call of account $1 that failed on the server's side, within the month it was counted in, which began at $2.
update accounts.limiter l set used = greatest(0, l.used - 1)
where l.account_id = $1 and l.month = $2
