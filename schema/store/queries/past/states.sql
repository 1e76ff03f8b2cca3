-- States of runs, and further runs of their record batches, as last part of facts.sql and rows.sql, and of rates.sql for
-- rates without other facts. Few record batches have further runs, but the runs with changes may have most batches.
select 'run_changes', run, null, null, null, sequence, null, null, null, null, null, null, null, state
from {facts}.run_changes
union all
select 'batch_runs', listed.run, null, null, null, listed.sequence, listed.frame, null, null, null, null, null, null, null
from {facts}.batch_runs listed
-- Offset 0 keeps the look-up by batch.
cross join lateral (
  select run from {facts}.frames where frame = listed.frame offset 0
) owner
where exists (select from {facts}.run_changes)
  and (owner.run in (select run from {facts}.run_changes) or exists (
    select from {facts}.batch_runs other
    where other.frame = listed.frame and other.run in (select run from {facts}.run_changes)
  ))
