insert into accounts.audit (account_id, action, details) values ($1, $2, $3)
