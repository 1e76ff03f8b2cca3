select r.symbol, r.kind, r.source, r.packed
from unnest($1::text[], $2::text[], $3::text[]) as k (symbol, kind, source)
join records r on (r.symbol, r.kind, r.source) = (k.symbol, k.kind, k.source)
