-- Tables of one fact set. Run once in its own schema; names are unqualified (search_path).
-- Facts are all distinct observations of all sources in visible runs. Merging is set union. Duplicates, redeliveries,
-- other orders and other batches therefore give the same facts. The derivation of a security decides which source wins.
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
create index frames_by_run on frames (run);

-- A record batch belongs to the run that published it, and to each run whose manifest lists it.
create table batch_runs (
  frame bytea not null,
  run text not null,
  sequence bigint not null,
  primary key (frame, run)
);
create index batch_runs_by_run on batch_runs (run);
comment on table batch_runs is 'runs that list a record batch which another run published, such as a second load of the same file';
comment on column batch_runs.sequence is 'log sequence of the manifest';

-- State of each run that was ever held or excluded. A record batch is visible while one of its runs is.
create table run_changes (
  run text not null,
  sequence bigint not null,
  state text not null,
  reason text not null,
  at timestamptz not null,
  operator text not null,
  primary key (run, sequence)
);
comment on column run_changes.sequence is 'log sequence of the event; 0: fixed for this fact set, events of the log do not change it';
comment on column run_changes.state is 'visible, held or excluded, from this sequence on';

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
create index bars_by_year on bars (year, last_day) include (symbol, source);
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
