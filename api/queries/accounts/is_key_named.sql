-- Whether account $1 has an active key named $2.
select exists (
  select from accounts.api_keys k
  where k.account_id = $1 and k.name = $2 and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
) as named
