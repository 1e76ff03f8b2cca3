-- $1 fact set, $2 symbols.
insert into dirty (generation, symbols, reference)
select g.id, $2::text[], false
from generations g
where g.fact_set = $1 and g.state in ('building', 'tailing') and cardinality($2::text[]) > 0
