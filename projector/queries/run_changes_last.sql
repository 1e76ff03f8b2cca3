-- $1 runs. Last change of each run.
select distinct on (run) run, state, reason, at, operator from run_changes where run = any ($1) order by run, sequence desc
