-- Incidents from time $1 on, newest first. An incident consists of minutes with more than 5 % failed calls. At most five
-- other minutes between two such minutes are part of it, and it may continue until the
-- minutes after the last one are written, 8 minutes after its end.
with failing as (
  select minute, minute - lag(minute) over (order by minute) > interval '6 minutes' as is_first
  from accounts.traffic_minutes
  where minute >= $1 and failures * 20 > calls
), numbered as (
  select minute, count(*) filter (where is_first) over (order by minute) as number from failing
), spans as (
  select min(minute) as start, max(minute) + interval '1 minute' as "end" from numbered group by number
)
select s.start, case when s."end" + interval '8 minutes' < now() then s."end" end as "end",
       sum(m.calls)::bigint as calls, sum(m.failures)::bigint as failures,
       trim_scale(round(100 * sum(m.failures) / sum(m.calls), 2)) as failure_percent
from spans s
join accounts.traffic_minutes m on m.minute >= s.start and m.minute < s."end"
group by s.start, s."end"
order by s.start desc
limit 200
