-- Adds calls to minutes and hours. $1 minutes, $2 calls, $3 failed calls; $4 hours, $5 groups of endpoints, $6 failed calls,
-- $7 calls by duration, each as text of an array.
with minutes as (
  insert into accounts.traffic_minutes as m (minute, calls, failures)
  select * from unnest($1::timestamptz[], $2::bigint[], $3::bigint[])
  on conflict (minute) do update set calls = m.calls + excluded.calls, failures = m.failures + excluded.failures
)
insert into accounts.traffic_hours as h (hour, endpoint_group, failures, durations)
select t.hour, t.endpoint_group, t.failures, t.durations::integer[]
from unnest($4::timestamptz[], $5::text[], $6::bigint[], $7::text[]) as t (hour, endpoint_group, failures, durations)
on conflict (hour, endpoint_group) do update set
  failures = h.failures + excluded.failures,
  durations = (
    select array_agg(least(coalesce(d.earlier, 0)::bigint + coalesce(d.added, 0), 2147483647)::integer order by d.ordinal)
    from unnest(h.durations, excluded.durations) with ordinality as d (earlier, added, ordinal)
  )
