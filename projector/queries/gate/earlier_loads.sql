-- $1 source, $2 file names, $3 run. The last twenty visible loads of files with these names, the newest first: newest
-- session, and rows of these files by kind. Digits in names are ignored, because many names contain the date.
with names as (
  select distinct regexp_replace(file, '[0-9]+([-_.][0-9]+)*', '#', 'g') as name from unnest($2::text[]) as file
), loads as (
  select r.run, r.sequence, (r.manifest -> 'newest' ->> 'price')::date as newest
  from runs r
  where r.state = 'completed' and r.manifest ->> 'source' = $1 and r.run <> $3
    and r.sequence < coalesce((select min(sequence) from runs where run = $3), r.sequence + 1)
    and exists (
      select from json_array_elements_text(r.manifest -> 'files') as file
      where regexp_replace(file, '[0-9]+([-_.][0-9]+)*', '#', 'g') in (select name from names)
    )
    and r.run not in (select s.run from run_states() s where s.state <> 'visible')
  order by r.sequence desc
  limit 20
)
select l.newest, (
    select coalesce(json_object_agg(f.kind, f.rows), '{}')
    from (
      select kind, sum(rows) as rows from frames
      where (run = l.run or frame in (select frame from batch_runs b where b.run = l.run))
        and regexp_replace(file, '[0-9]+([-_.][0-9]+)*', '#', 'g') in (select name from names)
      group by kind
    ) f
  ) as rows
from loads l
order by l.sequence desc
