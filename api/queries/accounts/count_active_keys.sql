-- Number of active keys of account $1. The transaction has locked the account.
select count(*) as active from accounts.api_keys k
where k.account_id = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
