with keys as (
  update accounts.api_keys set revoked_at = now() where account_id = $1 and revoked_at is null
), passwords as (
  delete from accounts.passwords where account_id = $1
), sessions as (
  delete from accounts.sessions where account_id = $1
)
update accounts.accounts set deleted_at = now() where id = $1
