-- $1 source, $2 run; a dry run is none of the runs, and follows all of them. Values of the source's other loads in the 90
-- days before.
with loads as (
  select run, (manifest ->> 'observed_at')::timestamptz as loaded_at
  from runs where state = 'started' and manifest ->> 'source' = $1
), ending as (
  select coalesce(max(loaded_at) filter (where run = $2), max(loaded_at)) as at from loads
)
select m.kind, m.expectation, m.value
from measured_loads m
join loads l using (run)
join ending e on l.loaded_at between e.at - interval '90 days' and e.at
where m.run <> $2
