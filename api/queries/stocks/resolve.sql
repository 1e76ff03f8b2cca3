-- $1 positions and $2 spellings side by side, preferred ones first: the canonical symbol of each position.
select distinct on (c.ordinal) c.ordinal, s.canonical
from unnest($1::integer[], $2::text[]) with ordinality as c (ordinal, symbol, preference) join symbols s using (symbol)
order by c.ordinal, c.preference
