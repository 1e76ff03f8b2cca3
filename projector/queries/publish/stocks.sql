-- $1 securities.
select * from stocks where symbol = any ($1) order by symbol
