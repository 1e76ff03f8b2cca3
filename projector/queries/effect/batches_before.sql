-- $1 position; $2 kinds and $3 sources of feeds. Messages of these feeds before the position, with the newest date of
-- the run if its manifest has one.
with newest as materialized (
  select r.run, dated.key as kind, dated.value::date as newest
  from runs r cross join json_each_text(r.manifest -> 'newest') dated
  where r.state = 'completed'
)
select f.kind, f.source, f.sequence, max(n.newest) as newest
from frames f
join unnest($2::text[], $3::text[]) as feed (kind, source) on feed.kind = f.kind and feed.source = f.source
left join newest n on n.run = f.run and n.kind = f.kind
where f.sequence < $1
group by f.kind, f.source, f.sequence
order by f.sequence
