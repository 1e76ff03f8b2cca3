update accounts.accounts set tier = $2, paid_until = $3 where lower(email) = $1 and deleted_at is null
