update fact_sets set lease_until = null, holder = null where name = $1 and epoch = $2
