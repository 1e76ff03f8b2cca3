-- How often each key called which endpoint with which outcome, by day (UTC): statistics for people, never limits.
create table accounts.calls (
  account_id bigint not null,
  day date not null,
  endpoint text not null,
  key_id bigint not null,
  outcome text not null,
  calls bigint not null,
  last_at timestamptz not null,
  primary key (account_id, day, endpoint, key_id, outcome)
);
create index calls_by_day on accounts.calls (day);
comment on column accounts.calls.endpoint is 'the path''s template, or other for unknown ones';

grant select, insert, update, delete on accounts.calls to dds_api;
grant select on accounts.calls to dds_dashboard;
