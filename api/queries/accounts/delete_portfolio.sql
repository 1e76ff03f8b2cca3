-- Deletes portfolio $2 of account $1.
delete from accounts.portfolios where account_id = $1 and name = $2
