-- Indexes that only readers need. They are created after the first rows are written, because sorting once is far
-- cheaper than inserting.
create index if not exists dividends_by_ex_date on dividends (ex_date);
create index if not exists dividends_by_payment_date on dividends (payment_date) where payment_date is not null;
create index if not exists splits_by_ex_date on splits (ex_date);
-- Funds by holding. The column is compared with other symbols, so the index has their collation.
create index if not exists holdings_by_symbol on holdings (symbol collate "C", etf_symbol, as_of)
  where symbol is not null;
