-- $1 source, $2 run. Held runs of the source that began before the run.
select r.run from runs r
where r.state = 'started' and r.manifest ->> 'source' = $1 and r.run <> $2
  and r.sequence < coalesce((select min(sequence) from runs where run = $2), r.sequence + 1)
  and (select c.state from run_changes c where c.run = r.run order by c.sequence desc limit 1) = 'held'
