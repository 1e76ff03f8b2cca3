update fact_sets set lease_until = clock_timestamp() + make_interval(secs => $3) where name = $1 and epoch = $2
