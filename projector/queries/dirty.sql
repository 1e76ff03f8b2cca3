-- $1 generation. Each symbol once, because a backlog marks symbols repeatedly.
select s.symbol, bool_or(d.reference) as reference
from dirty d
cross join unnest(d.symbols) as s (symbol)
where d.generation = $1
group by s.symbol
