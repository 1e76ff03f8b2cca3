-- $1 securities.
select * from metrics where symbol = any ($1) order by symbol
