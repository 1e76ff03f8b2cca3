-- $2: whether it is disabled from now on, or enabled again.
update accounts.accounts set disabled_at = case when $2 then coalesce(disabled_at, now()) end where id = $1
