-- $1 symbols, $2 sources and $3 years of rows to leave out. Newest session with a live bar in all other rows.
select max(last_day) as last_day
from bars b
where not exists (
  select from unnest($1::text[], $2::text[], $3::integer[]) as touched (symbol, source, year)
  where touched.symbol = b.symbol and touched.source = b.source and touched.year = b.year
)
