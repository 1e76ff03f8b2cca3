-- Portfolios that holders save, for their income as a page, a table and a calendar.

create table accounts.portfolios (
  account_id bigint not null references accounts.accounts on delete cascade,
  name text not null,
  holdings text not null,
  edits bigint not null default 0,
  saved_at timestamptz not null default now(),
  primary key (account_id, name)
);
comment on table accounts.portfolios is 'saved holdings of an account; nobody else can read them';
comment on column accounts.portfolios.holdings is 'SYMBOL:SHARES or SYMBOL:SHARES:COST, comma-separated';
comment on column accounts.portfolios.edits is 'number of changes after the first save; the events of its calendar count them';

grant select, insert, update, delete on accounts.portfolios to dds_dashboard;
