-- $1 indexes of look-ups and $2 keys of their addresses, in order of preference. Symbols of the security of each look-up,
-- the canonical symbol first.
select found.ordinal, o.symbol
from (
  select distinct on (c.ordinal) c.ordinal, s.canonical
  from unnest($1::integer[], $2::text[]) with ordinality as c (ordinal, symbol, preference) join symbols s using (symbol)
  order by c.ordinal, c.preference
) found
join symbols o on o.canonical = found.canonical and o.symbol !~ '[:@]'
order by found.ordinal, o.symbol <> o.canonical, o.symbol
