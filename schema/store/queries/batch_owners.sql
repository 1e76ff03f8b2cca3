-- $1 ids of record batches. The place and the run of each batch, and further runs whose manifests list it.
select frame, kind, sequence, run, null::bigint as listed from frames where frame = any ($1)
union all
select frame, null, null, run, sequence from batch_runs where frame = any ($1)
