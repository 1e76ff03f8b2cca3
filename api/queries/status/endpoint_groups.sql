-- Failed calls, and calls by duration, of each group of endpoints. $1 start of the long period, $2 start of the short one.
select endpoint_group, array_agg(calls order by ordinal) as durations, min(failures) as failures,
       array_agg(recent_calls order by ordinal) as recent_durations, min(recent_failures) as recent_failures
from (
  select h.endpoint_group, d.ordinal, sum(d.calls)::bigint as calls, sum(h.failures)::bigint as failures,
         coalesce(sum(d.calls) filter (where h.hour >= $2), 0)::bigint as recent_calls,
         coalesce(sum(h.failures) filter (where h.hour >= $2), 0)::bigint as recent_failures
  from accounts.traffic_hours h, unnest(h.durations) with ordinality as d (calls, ordinal)
  where h.hour >= $1
  group by h.endpoint_group, d.ordinal
) g
group by endpoint_group
order by endpoint_group
