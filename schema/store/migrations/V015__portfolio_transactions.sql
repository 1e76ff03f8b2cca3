-- A saved portfolio has holdings or transactions.
alter table accounts.portfolios add column transactions text not null default '';
alter table accounts.portfolios alter column holdings set default '';
alter table accounts.portfolios add constraint portfolios_content check ((holdings = '') <> (transactions = ''));
comment on table accounts.portfolios is 'saved holdings or transactions; only their account can read them';
comment on column accounts.portfolios.holdings is 'SYMBOL:SHARES or SYMBOL:SHARES:COST, comma-separated; empty with transactions';
comment on column accounts.portfolios.transactions is 'CSV: account,symbol,date,quantity,price,currency; empty with holdings';
