delete from bars b
using unnest($1::text[], $2::text[], $3::integer[]) as k (symbol, source, year)
where (b.symbol, b.source, b.year) = (k.symbol, k.source, k.year)
