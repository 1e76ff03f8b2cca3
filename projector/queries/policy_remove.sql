delete from source_policy
where kind = $1 and source = $2 and valid_from is not distinct from $3 and valid_to is not distinct from $4
