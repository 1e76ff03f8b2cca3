-- $1 symbols, $2 sources and $3 years of rows. Deletes the bars that do not count, and returns them.
delete from superseded_bars s
using unnest($1::text[], $2::text[], $3::integer[]) as k (symbol, source, year)
where s.symbol = k.symbol and s.source = k.source and s.year = k.year
returning s.symbol, s.source, s.year, s.packed
