-- Number of years with bars before year $2, by symbol. $1 symbols.
select symbol, count(distinct year) from bars where symbol = any ($1) and year < $2 group by symbol
