-- $1 indexes of look-ups and $2 spellings of their symbols, in order of preference. One row per look-up; its columns
-- are null for an unknown symbol.
select asked.ordinal, v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated, t.*
from version v
cross join (
  select distinct on (c.ordinal) c.ordinal, n.canonical
  from unnest($1::integer[], $2::text[]) with ordinality as c (ordinal, symbol, preference)
  left join symbols n using (symbol)
  order by c.ordinal, n.canonical is null, c.preference
) asked
left join metrics t on t.symbol = asked.canonical
