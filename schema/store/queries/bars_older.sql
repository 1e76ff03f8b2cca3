create temporary table older on commit drop as select * from bars;
truncate bars;
declare older_years no scroll cursor for
select symbol, source, year, last_day, days, close, range, volume, extra, versions
from older
