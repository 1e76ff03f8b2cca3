-- What only reading needs: a generation that is built gets it at the end, when sorting once is far cheaper than inserting.
create index dividends_by_ex_date on dividends (ex_date);
create index dividends_by_payment_date on dividends (payment_date) where payment_date is not null;
