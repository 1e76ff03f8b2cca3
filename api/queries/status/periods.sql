-- Calls and failed calls in consecutive periods. $1 start of the first period, $2 length in hours, $3 number of periods.
select p.start, coalesce(sum(m.calls), 0)::bigint as calls, coalesce(sum(m.failures), 0)::bigint as failures
from (
  select $1::timestamptz + make_interval(hours => $2 * n) as start, $1 + make_interval(hours => $2 * (n + 1)) as "end"
  from generate_series(0, $3::integer - 1) n
) p
left join accounts.traffic_minutes m on m.minute >= p.start and m.minute < p."end"
group by p.start
order by p.start
