insert into accounts.api_keys (account_id, hash, name, last_four, expires_at, rate_per_minute, kind)
values ($1, $2, $3, $4, $5, $6, $7)
returning id, name, kind, last_four, created_at, expires_at, rate_per_minute,
  case when expires_at <= now() then 'expired' else 'active' end as status, null::timestamptz as last_used
