-- $1 fact set, $2 sources: marks every symbol of the sources dirty.
insert into dirty (generation, symbols, reference)
select g.id, array_agg(covered.symbol), false
from generations g
cross join (
  select symbol from bars where source = any ($2)
  union
  select symbol from records where source = any ($2)
) covered
where g.fact_set = $1 and g.state in ('building', 'tailing')
group by g.id
