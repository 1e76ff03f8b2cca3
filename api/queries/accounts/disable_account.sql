-- Disables account $1 if $2 is true, otherwise enables it. No row if nothing changes.
update accounts.accounts set disabled_at = case when $2 then now() end
where id = $1 and (disabled_at is null) = $2
