-- Portfolios of account $1.
select name, holdings, transactions, edits, saved_at from accounts.portfolios where account_id = $1 order by name
