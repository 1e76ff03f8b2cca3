-- $1 positions and $2 spellings side by side, preferred ones first: the securities that the symbols name, and those that
-- they named earlier.
with named as (
  select distinct on (c.ordinal) s.canonical
  from unnest($1::integer[], $2::text[]) with ordinality as c (ordinal, symbol, preference) join symbols s using (symbol)
  order by c.ordinal, c.preference
)
select canonical as symbol, true as is_named from named
union
select c.id, false from changes c where c.kind = 'symbols' and c.symbol = any ($2)
