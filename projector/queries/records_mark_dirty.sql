-- $1 fact set, $2 symbols, $3 for each symbol: true if its security record changed.
insert into dirty (generation, symbols, reference)
select g.id, array_agg(distinct c.symbol), c.reference
from generations g
cross join unnest($2::text[], $3::boolean[]) as c (symbol, reference)
where g.fact_set = $1 and g.state in ('building', 'tailing')
group by g.id, c.reference
