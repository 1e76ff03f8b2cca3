update accounts.accounts set email = $2 where id = $1
