with keys as (
  update accounts.api_keys set revoked_at = now() where account_id = $1 and revoked_at is null
), passwords as (
  delete from accounts.passwords where account_id = $1
), sessions as (
  delete from accounts.sessions where account_id = $1
), devices as (
  delete from accounts.known_devices where account_id = $1
), portfolios as (
  delete from accounts.portfolios where account_id = $1
), links as (
  update accounts.links set used_at = now() where account_id = $1 and used_at is null
)
update accounts.accounts set deleted_at = now() where id = $1
