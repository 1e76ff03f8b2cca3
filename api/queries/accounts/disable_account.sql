-- $2: whether it is disabled from now on, or enabled again. No row where it is so already.
update accounts.accounts set disabled_at = case when $2 then now() end
where id = $1 and (disabled_at is null) = $2
