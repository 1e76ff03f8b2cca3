-- $3 items of the message that still cannot be applied.
update dead_letters set status = 'applied'
where fact_set = $1 and sequence = $2 and status = 'held' and item <> all ($3)
