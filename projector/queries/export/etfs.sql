select * from etfs order by symbol
