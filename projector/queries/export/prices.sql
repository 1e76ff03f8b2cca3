-- Years of reader $2 of $1.
select year, symbol, days, close, range, volume, extra
from prices
where year % $1 = $2
order by year, symbol
