-- Tables of one fact set. Run once in its own schema; names are unqualified (search_path).
-- Facts are all distinct observations of all sources, as a set that only grows. Merging is set union. Duplicates,
-- redeliveries, other orders and other batches therefore give the same facts. The derivation of a security decides
-- which source wins.
create table frames (
  frame bytea primary key,
  sequence bigint not null,
  kind text not null,
  source text not null,
  run text not null,
  file text not null,
  line bigint not null,
  rows integer not null
);

-- Prices: one row per symbol, source and year, with columns of scaled integers in blocks (codec::bars).
create table bars (
  symbol text collate "C" not null,
  source text collate "C" not null,
  year integer not null,
  last_day integer,
  digest bigint not null,
  days bytea not null,
  close bytea not null,
  range bytea not null,
  volume bytea not null,
  extra bytea not null,
  versions bytea not null,
  primary key (symbol, source, year)
);
alter table bars
  alter column days set storage external, alter column close set storage external,
  alter column range set storage external, alter column volume set storage external,
  alter column extra set storage external, alter column versions set storage external;
-- A year has 1 to 3 kB. Kept in the row, it needs one read or write instead of four.
-- Each trading day replaces one year of every symbol. Dead rows are vacuumed every other day; otherwise the table would
-- grow by a fifth.
alter table bars set (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.05);
create index bars_by_year on bars (year, last_day);
comment on column bars.digest is 'of the columns days to extra, as in prices: a year is served as it is where the two are the same';
comment on column bars.last_day is 'newest session with a live bar, days from 0001-01-01';

create table rejects (
  frame bytea not null,
  item integer not null,
  run text not null,
  source text not null,
  file text not null,
  line bigint not null,
  reason text not null,
  message text not null,
  row text not null,
  primary key (frame, item)
);
create index rejects_by_run on rejects (run, file, line);

create table runs (
  run text not null,
  state text not null,
  sequence bigint not null,
  manifest json not null,
  primary key (run, state)
);

do $$
begin
  execute format('grant usage on schema %I to dds_api', current_schema());
  execute format('grant select on all tables in schema %I to dds_api', current_schema());
end $$;
