-- $1 securities.
select * from quotes where symbol = any ($1) order by symbol
