-- Row count and age of every feed and kind, including rejects. Runs that are held or excluded do not make a feed younger.
with brought as (
  select source, kind, sum(rows)::bigint as rows from frames where kind <> 'run' group by source, kind
), loaded as (
  select manifest ->> 'source' as source, frames ->> 'kind' as kind,
         max((manifest ->> 'observed_at')::timestamptz) as loaded,
         max((manifest -> 'newest' ->> (frames ->> 'kind'))::date) as newest
  from runs, json_array_elements(manifest -> 'frames') as frames
  where state = 'completed' and runs.run not in (select s.run from run_states() s where s.state <> 'visible')
  group by 1, 2
)
select b.source, b.kind, b.rows, l.loaded, l.newest
from brought b
left join loaded l using (source, kind)
