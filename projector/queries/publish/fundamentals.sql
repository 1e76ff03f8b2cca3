-- $1 securities.
select * from fundamentals where symbol = any ($1) order by symbol
