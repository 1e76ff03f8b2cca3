-- The tables of one fact set: run once in its own schema, names unqualified (search_path).
-- Facts: every distinct observation of every source, as a set that only grows. Merging is set union, so duplicates,
-- re-deliveries, any order and any cut into batches converge; who wins is decided when a security is derived.
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

-- Prices: one row per symbol, source and year, holding columns of scaled integers in blocks (codec::bars).
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
-- A year is 1 to 3 kB: kept in the row, it is one place to write and to read instead of four.
-- A day writes one year of each symbol again: what it leaves is cleared every other day, or the table would grow by a fifth.
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
