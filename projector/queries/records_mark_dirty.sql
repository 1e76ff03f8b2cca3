insert into dirty (generation, symbol, reference)
select g.id, s.symbol, s.reference
from generations g
cross join (
  select distinct symbol, reference from unnest($2::text[], $3::boolean[]) as changed (symbol, reference)
) s
where g.fact_set = $1 and g.state in ('building', 'tailing')
on conflict do nothing
