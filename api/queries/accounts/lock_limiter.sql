-- Locked before a key of account $1 is touched, in the order in which admission locks an account's row and its keys'.
select from accounts.limiter where account_id = $1 for update
