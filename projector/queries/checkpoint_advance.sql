update fact_sets
set checkpoint = $2, genesis_id = $3, checkpoint_message = coalesce($5, checkpoint_message), halted = null,
  lease_until = clock_timestamp() + make_interval(secs => $4)
where name = $1
