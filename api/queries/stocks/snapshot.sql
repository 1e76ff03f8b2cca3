-- $1 spellings of the symbol, in order of preference. One row always; its columns are null for an unknown symbol.
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of, t.*
from version v
left join lateral (
  select s.canonical
  from unnest($1::text[]) with ordinality as c (symbol, place) join symbols s using (symbol)
  order by c.place limit 1
) found on true
left join stocks t on t.symbol = found.canonical
