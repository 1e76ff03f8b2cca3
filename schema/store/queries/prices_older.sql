create temporary table older on commit drop as select * from prices;
truncate prices;
declare older_years no scroll cursor for
select symbol, year, days, close, range, volume, extra, bytea '' as versions
from older
