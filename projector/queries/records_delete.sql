delete from records r
using unnest($1::text[], $2::text[], $3::text[]) as k (symbol, kind, source)
where (r.symbol, r.kind, r.source) = (k.symbol, k.kind, k.source)
