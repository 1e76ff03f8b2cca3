select p.symbol, p.year, p.days, p.close, p.range, p.volume, p.extra, bytea '' as versions
from unnest($1::text[], $2::integer[]) as w (symbol, year)
join prices p on p.symbol = w.symbol collate "C" and p.year = w.year
