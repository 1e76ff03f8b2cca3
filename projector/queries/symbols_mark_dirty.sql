insert into dirty (generation, symbol, reference)
select g.id, s.symbol, false
from generations g
cross join (select distinct symbol from unnest($2::text[]) as symbol) s
where g.fact_set = $1 and g.state in ('building', 'tailing')
on conflict do nothing
