select * from factors order by symbol, ex_date
