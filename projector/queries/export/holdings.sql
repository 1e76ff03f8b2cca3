select * from holdings order by etf_symbol, as_of, rank
