-- $1 generation. A served generation's pointer is held until the transaction ends, so that positions are in the order of
-- commits and no other generation is served meanwhile.
select generation from active where generation = $1 for update
