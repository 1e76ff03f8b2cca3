insert into accounts.api_keys (account_id, hash, name, last_four, expires_at) values ($1, $2, $3, $4, $5)
returning id, name, last_four, created_at, expires_at,
  case when expires_at <= now() then 'expired' else 'active' end as status
