update accounts.accounts set wanted_tier = $2, wanted_at = now()
where id = $1 and wanted_tier is distinct from $2
