delete from prices p
using unnest($1::text[], $2::integer[]) as k (symbol, year)
where (p.symbol, p.year) = (k.symbol, k.year)
