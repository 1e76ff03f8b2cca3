-- Facts: every distinct observation of every source, as a set that only grows. Merging is set union, so duplicates,
-- re-deliveries, any order and any cut into batches converge; who wins is decided when a security is derived.
create schema facts;
grant usage on schema facts to dds_projector, dds_api;

create table facts.frames (
  frame bytea primary key,
  sequence bigint not null,
  kind text not null,
  source text not null,
  run text not null,
  file text not null,
  line bigint not null,
  rows integer not null
);

-- Every kind but prices. A record seen again keeps its newest observation time.
create table facts.observations (
  symbol text not null,
  kind text not null,
  source text not null,
  key text not null,
  content bytea not null,
  id text,
  security_ref text,
  revision bigint not null,
  action text not null,
  observed_at timestamptz not null,
  line bigint not null,
  frame bytea not null,
  record json not null,
  primary key (symbol, kind, source, key, content)
);
create index observations_by_id on facts.observations (source, kind, id) where id is not null;
create index observations_by_kind on facts.observations (kind) where kind in ('security', 'session');
comment on column facts.observations.key is 'the vendor''s id, else the natural key';
comment on column facts.observations.content is 'hash of what the row says: id, revision, action, record';

-- Prices: one row per symbol, source and year, holding columns of delta-coded scaled integers (schema::bars).
create table facts.bars (
  symbol text not null,
  source text not null,
  year integer not null,
  last_day integer,
  days bytea not null,
  close bytea not null,
  range bytea not null,
  volume bytea not null,
  extra bytea not null,
  versions bytea not null,
  primary key (symbol, source, year)
);
alter table facts.bars
  alter column days set storage external, alter column close set storage external,
  alter column range set storage external, alter column volume set storage external,
  alter column extra set storage external, alter column versions set storage external;
create index bars_by_year on facts.bars (year, last_day);
comment on column facts.bars.last_day is 'newest session with a live bar, days from 0001-01-01';

create table facts.rejects (
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
create index rejects_by_run on facts.rejects (run, file, line);

create table facts.runs (
  run text not null,
  state text not null,
  sequence bigint not null,
  manifest json not null,
  primary key (run, state)
);

grant select, insert, update, delete on all tables in schema facts to dds_projector;
grant select on all tables in schema facts to dds_api;
