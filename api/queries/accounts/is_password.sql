-- True if $2 is still the password hash of account $1 and the account may sign in.
select exists (
  select from accounts.accounts a join accounts.passwords p on p.account_id = a.id
  where a.id = $1 and p.hash = $2 and a.deleted_at is null and a.disabled_at is null
) as holds
