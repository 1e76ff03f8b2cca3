-- What only reading needs: a generation that is built gets it at the end, when sorting once is far cheaper than inserting.
create index dividends_by_ex_date on dividends (ex_date, symbol);
create index dividends_by_payment_date on dividends (payment_date, symbol) where payment_date is not null;
