-- A vendor may correct the symbol of a record it names by id. Every observation of such an id is kept under every
-- symbol the id has had, so that deriving either symbol sees the whole story, whatever came first.
with pairs as (
  select kind, source, id, symbol from staged_observations where id is not null
  union
  select f.kind, f.source, f.id, f.symbol
  from observations f
  join (select distinct kind, source, id from staged_observations where id is not null) t using (kind, source, id)
), moved as (
  select kind, source, id from pairs group by kind, source, id having count(*) > 1
), versions as (
  select t.* from staged_observations t join moved using (kind, source, id)
  union all
  select f.* from observations f join moved using (kind, source, id)
)
insert into staged_observations
select p.symbol, v.kind, v.source, v.key, v.content, v.id, v.security_ref, v.revision, v.action, v.observed_at, v.line,
       v.frame, v.record
from versions v
join pairs p using (kind, source, id)
where p.symbol <> v.symbol
