-- $1 source, $2 run. Held runs of the source that began before the run.
select r.run from runs r
join run_states() s on s.run = r.run and s.state = 'held'
where r.state = 'started' and r.manifest ->> 'source' = $1 and r.run <> $2
  and r.sequence < coalesce((select min(sequence) from runs where run = $2), r.sequence + 1)
