select symbol, source, year, days, close, range, volume, extra, versions
from bars
where symbol = any ($1)
order by symbol, source, year
