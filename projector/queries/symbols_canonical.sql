-- $1 keys of an address, best first.
select s.canonical
from unnest($1::text[]) with ordinality as c (symbol, ordinal) join symbols s using (symbol)
order by c.ordinal
limit 1
