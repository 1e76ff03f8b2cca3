-- Names of account $1's active keys of kind $2.
select k.name from accounts.api_keys k
where k.account_id = $1 and k.kind = $2 and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
