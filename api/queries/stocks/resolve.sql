-- $1 indexes of look-ups and $2 spellings of their symbols, in order of preference. Canonical symbol of each look-up.
select distinct on (c.ordinal) c.ordinal, s.canonical
from unnest($1::integer[], $2::text[]) with ordinality as c (ordinal, symbol, preference) join symbols s using (symbol)
order by c.ordinal, c.preference
