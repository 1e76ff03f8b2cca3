-- Counts of the accounts, keys and passwords that a restore makes valid again.
select (select count(*) from accounts.accounts where deleted_at is null) as accounts,
       (select count(*) from accounts.api_keys k
        join accounts.accounts a on a.id = k.account_id
        where k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
          and a.deleted_at is null and a.disabled_at is null) as keys,
       (select count(*) from accounts.passwords p
        join accounts.accounts a on a.id = p.account_id
        where a.deleted_at is null) as passwords
