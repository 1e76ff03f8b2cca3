select * from symbols order by symbol
