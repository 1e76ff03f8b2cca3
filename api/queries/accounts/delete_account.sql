with keys as (
  update accounts.api_keys set revoked_at = now() where account_id = $1 and revoked_at is null
)
update accounts.accounts set deleted_at = now() where id = $1
