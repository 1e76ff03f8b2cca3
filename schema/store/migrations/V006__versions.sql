-- Served data versions, with the inputs of their derivation. An answer of an earlier version is derived again from the
-- facts up to its sequence.
create table control.version_inputs (
  id integer generated always as identity primary key,
  fact_set text not null,
  method_version text not null,
  program_version text not null,
  benchmark text not null,
  policy jsonb not null,
  rules jsonb not null,
  journal text not null
);
comment on table control.version_inputs is 'inputs of derivations besides facts and market date; one row for every combination that was served';
comment on column control.version_inputs.fact_set is 'schema of the facts';
comment on column control.version_inputs.method_version is 'version of the rules';
comment on column control.version_inputs.program_version is 'version of the projector that derived with these rules';
comment on column control.version_inputs.benchmark is 'symbol that betas are measured against';
comment on column control.version_inputs.policy is 'source policy';
comment on column control.version_inputs.journal is 'identity of the change journal, which tokens of the answers name';
comment on column control.version_inputs.rules is 'rule parameters that are not their defaults';

create table control.versions (
  position bigint primary key,
  generation integer not null,
  sequence bigint not null,
  is_repeated boolean not null,
  as_of date,
  inputs integer not null references control.version_inputs,
  at timestamptz not null default clock_timestamp()
);
comment on table control.versions is 'every served version of the data; never deleted. A later sequence without an entry changed nothing';
comment on column control.versions.position is 'position of the journal, in the order of commits';
comment on column control.versions.generation is 'generation that was served; it may be dropped';
comment on column control.versions.sequence is 'last log sequence whose facts are in the version';
comment on column control.versions.is_repeated is 'true: generation and sequence were served before with other data, so the version is named with its position';
comment on column control.versions.as_of is 'market date';
comment on column control.versions.at is 'time of the commit';
create index versions_by_generation on control.versions (generation, sequence, position);
create index versions_by_time on control.versions (at);

create table control.factor_changes (
  symbol text collate "C" not null,
  position bigint not null,
  at timestamptz not null,
  primary key (symbol, position)
);
comment on table control.factor_changes is 'times at which the adjustment factors of a security changed; never deleted';
insert into control.factor_changes (symbol, position, at)
select symbol, position, at from control.changes where kind = 'factors' and id = '';

grant select, insert, update, delete on control.version_inputs, control.versions, control.factor_changes
  to dds_projector;
grant select on control.version_inputs, control.versions, control.factor_changes to dds_api;

-- What the version of existing generations needs, and in every fact set the facts that later ones replaced. New
-- generations and fact sets have it from generation/.
do $$
declare name text;
begin
  set local role dds_projector;
  for name in select id::text from control.generations loop
    execute format('alter table %I.version add column is_repeated boolean not null default false', 'read_g' || name);
    execute format('create or replace view %I.version as select * from %I.version', 'analyst_g' || name, 'read_g' || name);
    execute format('comment on column %I.version.is_repeated is %L', 'analyst_g' || name,
      'true: generation and sequence were served before with other data');
  end loop;
  for name in select f.name from control.fact_sets f loop
    execute format('alter table %I.dividend_feeds add column sequence bigint not null default 0', name);
    execute format('create table %I.superseded_records (symbol text collate "C" not null, kind text collate "C" not null, source text collate "C" not null, packed bytea not null)', name);
    execute format('create index superseded_records_by_symbol on %I.superseded_records (symbol)', name);
    execute format('create table %I.superseded_bars (symbol text collate "C" not null, source text collate "C" not null, year integer not null, packed bytea not null)', name);
    execute format('create index superseded_bars_by_symbol on %I.superseded_bars (symbol)', name);
    execute format('create table %I.symbol_links (link bigint, symbol text collate "C" not null, primary key (link, symbol))', name);
    execute format('create index symbol_links_by_symbol on %I.symbol_links (symbol)', name);
    execute format('grant select on %I.superseded_records, %I.superseded_bars, %I.symbol_links to dds_api', name, name, name);
  end loop;
  reset role;
end $$;
