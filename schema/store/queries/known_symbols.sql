select symbol from observations where symbol <> '' group by symbol
union
select symbol from bars group by symbol
