-- Creates a one-time link with purpose $2. The link replaces unused links of this purpose for the address $3 or the
-- account $4.
with earlier as (
  delete from accounts.links where purpose = $2 and (email = $3 or account_id = $4) and used_at is null
)
insert into accounts.links (hash, purpose, email, account_id, tier, expires_at)
values ($1, $2, $3, $4, $5, now() + $6::integer * interval '1 hour')
returning expires_at
