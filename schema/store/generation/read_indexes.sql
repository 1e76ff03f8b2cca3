-- What only reading needs: a generation gets it with its first rows, for sorting them once is far cheaper than inserting.
create index if not exists dividends_by_ex_date on dividends (ex_date);
create index if not exists dividends_by_payment_date on dividends (payment_date) where payment_date is not null;
-- Funds by holding. The collation is that of all other symbols, with which the column is compared.
create index if not exists holdings_by_symbol on holdings (symbol collate "C", etf_symbol, as_of)
  where symbol is not null;
