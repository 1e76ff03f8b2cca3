-- $1 source, $2 kind and $3 expectation; null for all of them.
delete from expectations
where source = $1 and ($2::text is null or kind = $2) and ($3::text is null or expectation = $3)
