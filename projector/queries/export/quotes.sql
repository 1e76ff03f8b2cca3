select * from quotes order by symbol
