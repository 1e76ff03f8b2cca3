-- Adds calls to hours. $1 hours, $2 groups of endpoints, $3 failed calls, $4 calls by duration, each as text of an array.
insert into accounts.traffic_hours as h (hour, endpoint_group, failures, durations)
select t.hour, t.endpoint_group, t.failures, t.durations::integer[]
from unnest($1::timestamptz[], $2::text[], $3::bigint[], $4::text[]) as t (hour, endpoint_group, failures, durations)
on conflict (hour, endpoint_group) do update set
  failures = h.failures + excluded.failures,
  durations = (
    select array_agg(least(d.earlier::bigint + d.added, 2147483647)::integer order by d.ordinal)
    from unnest(h.durations, excluded.durations) with ordinality as d (earlier, added, ordinal)
  )
