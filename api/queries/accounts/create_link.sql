-- One link of a kind for an address and for an account: a new one ends those before it.
with earlier as (
  delete from accounts.links where purpose = $2 and (email = $3 or account_id = $4) and used_at is null
)
insert into accounts.links (hash, purpose, email, account_id, tier, expires_at)
values ($1, $2, $3, $4, $5, now() + $6::integer * interval '1 hour')
returning expires_at
