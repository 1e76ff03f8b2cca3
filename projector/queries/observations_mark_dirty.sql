insert into dirty (generation, symbol, reference)
select g.id, s.symbol, s.reference
from generations g
cross join (select distinct symbol, kind = 'security' as reference from staged_observations) s
where g.fact_set = $1 and g.state in ('building', 'tailing')
on conflict do nothing
