-- What only reading needs: a generation gets it with its first rows, for sorting them once is far cheaper than inserting.
create index if not exists dividends_by_ex_date on dividends (ex_date);
create index if not exists dividends_by_payment_date on dividends (payment_date) where payment_date is not null;
