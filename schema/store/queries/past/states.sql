-- States of runs, and further runs of their record batches, as last part of facts.sql, rows.sql and rates.sql.
select 'run_changes', run, null, null, null, sequence, null, null, null, null, null, null, null, state
from {facts}.run_changes
union all
select 'batch_runs', listed.run, null, null, null, listed.sequence, listed.frame, null, null, null, null, null, null, null
from (
  select owned.frame
  from {facts}.run_changes c
  -- Offset 0 keeps the look-up by run and by batch. Few runs have changes.
  cross join lateral (
    select frame from {facts}.frames where run = c.run
    union all
    select frame from {facts}.batch_runs where run = c.run
    offset 0
  ) owned
  group by owned.frame
) changed
cross join lateral (
  select run, sequence, frame from {facts}.batch_runs where frame = changed.frame offset 0
) listed
