with gone as (
  update accounts.accounts set deleted_at = now() where lower(email) = $1 and deleted_at is null returning id
),
keys as (
  update accounts.api_keys k set revoked_at = now() from gone where k.account_id = gone.id and k.revoked_at is null
)
select id from gone
