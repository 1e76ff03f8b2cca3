select extract(year from ex_date)::integer as partition, * from dividends order by 1, symbol, ex_date, type, id
