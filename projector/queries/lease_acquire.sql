update fact_sets
set holder = $2, epoch = epoch + 1, lease_until = clock_timestamp() + make_interval(secs => $3)
where name = $1 and (lease_until is null or lease_until < clock_timestamp())
returning epoch, checkpoint, checkpoint_message, genesis_id
