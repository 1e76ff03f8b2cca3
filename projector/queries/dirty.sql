-- $1 generation. Each symbol once: the marks of a backlog name the same ones again and again.
select s.symbol, bool_or(d.reference) as reference
from dirty d
cross join unnest(d.symbols) as s (symbol)
where d.generation = $1
group by s.symbol
