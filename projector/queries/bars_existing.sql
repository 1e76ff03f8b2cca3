select b.symbol, b.source, b.year, b.days, b.close, b.range, b.volume, b.extra, b.versions
from unnest($1::text[], $2::text[], $3::integer[]) as k (symbol, source, year)
join bars b on (b.symbol, b.source, b.year) = (k.symbol, k.source, k.year)
