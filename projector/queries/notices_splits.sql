-- $1 symbols, $2 first ex-date.
select * from splits where symbol = any ($1) and ex_date >= $2 and id is not null order by symbol, ex_date, id
