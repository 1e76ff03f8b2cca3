-- $1 securities.
select * from splits where symbol = any ($1) order by symbol, ex_date, id
