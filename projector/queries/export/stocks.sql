select * from stocks order by symbol
