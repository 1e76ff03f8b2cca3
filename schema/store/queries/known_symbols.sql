select symbol from records where symbol <> '' group by symbol
union
select symbol from bars group by symbol
