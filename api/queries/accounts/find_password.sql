-- The account of an address and its password's hash, when it may sign in.
select a.id, p.hash from accounts.accounts a join accounts.passwords p on p.account_id = a.id
where lower(a.email) = $1 and a.deleted_at is null and a.disabled_at is null
