-- $1 securities.
select * from etfs where symbol = any ($1) order by symbol
