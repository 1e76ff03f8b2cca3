insert into accounts.sessions (hash, account_id, address, agent) values ($1, $2, $3, $4)
