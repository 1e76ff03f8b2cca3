-- $1 securities.
select * from dividends where symbol = any ($1) order by symbol, ex_date, type, id
