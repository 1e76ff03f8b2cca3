-- $1 symbols, $2 sources, $3 years and $4 parts of rows to delete.
delete from superseded_bars s
using unnest($1::text[], $2::text[], $3::integer[], $4::integer[]) as k (symbol, source, year, part)
where s.symbol = k.symbol and s.source = k.source and s.year = k.year and s.part = k.part
