-- $1 securities.
select * from holdings where etf_symbol = any ($1) order by etf_symbol, as_of, rank
