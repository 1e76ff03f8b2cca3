-- $1 run. Record batches that the run published or lists.
select frame from frames where run = $1 and kind <> 'run'
union
select frame from batch_runs where run = $1
