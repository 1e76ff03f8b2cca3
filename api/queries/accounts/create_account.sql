insert into accounts.accounts (email, tier, paid_until) values ($1, $2, $3) returning id
