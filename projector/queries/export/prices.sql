-- The years of which this reader ($2 of $1) writes the files.
select year, symbol, days, close, range, volume, extra
from prices
where year % $1 = $2
order by year, symbol
