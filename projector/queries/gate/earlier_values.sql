-- $1 source, $2 run; in a dry run a text that names none. Values of the source's other loads that were measured in the
-- 90 days before the first comparison of the run.
with ending as (
  select coalesce(min(measured_at), now()) as at from measured_loads where run = $2
)
select m.kind, m.expectation, m.value
from measured_loads m
join ending e on m.measured_at between e.at - interval '90 days' and e.at
where m.source = $1 and m.run <> $2
