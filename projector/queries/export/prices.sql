-- $1 number of readers, $2 index of this reader. Price years that this reader exports.
select year, symbol, days, close, range, volume, extra
from prices
where year % $1 = $2
order by year, symbol
