-- Active keys of account $1, which the transaction has locked.
select count(*) as active from accounts.api_keys k
where k.account_id = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
