-- $1 symbols, $2 sources and $3 years. The last row of each year.
select s.symbol, s.source, s.year, s.part, s.packed
from unnest($1::text[], $2::text[], $3::integer[]) as k (symbol, source, year)
cross join lateral (
  select * from superseded_bars s
  where s.symbol = k.symbol and s.source = k.source and s.year = k.year
  order by s.part desc limit 1
) s
