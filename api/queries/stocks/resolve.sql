-- $1 positions and $2 spellings side by side, preferred ones first: the canonical symbol of each position.
select distinct on (c.place) c.place, s.canonical
from unnest($1::integer[], $2::text[]) with ordinality as c (place, symbol, preference) join symbols s using (symbol)
order by c.place, c.preference
