-- Ends key $1 after $2 hours, or at its old expiry if that is earlier.
update accounts.api_keys set expires_at = least(expires_at, now() + $2::integer * interval '1 hour') where id = $1
returning expires_at
