select * from metrics order by symbol
