select * from fundamentals order by symbol
