-- Refunds a call of account $1 that failed on the server's side. $2 start of the month in which the call was counted. A
-- balance of another month is not changed.
update accounts.limiter l set used = greatest(0, l.used - 1)
where l.account_id = $1 and l.month = $2
