select extract(year from ex_date)::integer as partition, * from splits order by 1, symbol, ex_date, id
