select symbol, source, year, digest, days, close, range, volume, extra, versions
from bars
where symbol = any ($1) and year >= $2
