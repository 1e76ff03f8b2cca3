-- A row that a transaction has locked is skipped. A standby therefore never waits for a long derivation.
update fact_sets
set holder = $2, epoch = epoch + 1, lease_until = clock_timestamp() + make_interval(secs => $3)
where name = (
  select name from fact_sets
  where name = $1 and (lease_until is null or lease_until < clock_timestamp())
  for update skip locked
)
returning epoch, checkpoint, checkpoint_message, genesis_id
