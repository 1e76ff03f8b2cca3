update accounts.accounts set tier = $2, paid_until = $3 where id = $1 returning tier, paid_until
