-- $1 ids of record batches, $2 run and $3 log sequence of the manifest that lists each batch. A run's own batches need no
-- entry.
insert into batch_runs (frame, run, sequence)
select listed.frame, listed.run, listed.sequence
from unnest($1::bytea[], $2::text[], $3::bigint[]) as listed (frame, run, sequence)
where not exists (select from frames f where f.frame = listed.frame and f.run = listed.run)
on conflict (frame, run) do nothing
