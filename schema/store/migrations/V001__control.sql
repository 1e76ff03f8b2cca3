-- Roles, and the projector's bookkeeping: where the log was read to, which generation is served.
-- Roles belong to the whole server, so a second database finds them there already.
do $$
declare name text;
begin
  foreach name in array array['dds_projector', 'dds_api'] loop
    begin
      execute format('create role %I login', name);
    exception when duplicate_object or unique_violation then null;
    end;
  end loop;
  execute format('grant connect on database %I to dds_projector, dds_api', current_database());
  execute format('grant create on database %I to dds_projector', current_database());
end $$;
revoke create on schema public from public;

create schema control;
grant usage on schema control to dds_projector, dds_api;

-- A fact set is one folding of the log, in a schema of its own: its position, its stream, and who may write it.
create table control.fact_sets (
  name text primary key,
  genesis_id text,
  checkpoint bigint not null default 0,
  epoch bigint not null default 0,
  holder text,
  lease_until timestamptz,
  paused boolean not null default false,
  until_sequence bigint,
  halted text
);
comment on column control.fact_sets.checkpoint is 'last log sequence whose effects are committed';
comment on column control.fact_sets.until_sequence is 'frozen for study: nothing later is applied';
comment on column control.fact_sets.epoch is 'raised by every take-over; a writer with an older epoch is refused';

-- A generation is one set of read tables, in schema read_g<id>, derived from a fact set by one version of the rules.
create table control.generations (
  id integer primary key,
  fact_set text not null references control.fact_sets,
  method_version text not null,
  state text not null check (state in ('building', 'tailing', 'frozen')),
  benchmark text not null,
  as_of date,
  policy json,
  projections text[],
  rebuilt_to text,
  created_at timestamptz not null default now()
);
comment on column control.generations.as_of is 'market date the generation is frozen at; null: the newest session';
comment on column control.generations.policy is 'source policy of its own; null: the live one';
comment on column control.generations.projections is 'read tables that were rebuilt; null: all';
comment on column control.generations.rebuilt_to is 'last symbol a rebuild has committed, so that it resumes there';

-- One row names the generation that is served.
create table control.active (
  one boolean primary key default true check (one),
  generation integer not null references control.generations,
  previous integer references control.generations on delete set null
);

-- Differences between generations that a person has looked at; a promotion asks for them.
create table control.reviews (
  generation integer not null references control.generations on delete cascade,
  against integer not null references control.generations on delete cascade,
  sequence bigint not null,
  against_sequence bigint not null,
  reviewed_at timestamptz not null default now(),
  primary key (generation, against)
);

-- Which source wins: lower rank first, per kind and date range; sources without a rule come last.
create table control.source_policy (
  kind text not null,
  source text not null,
  valid_from date,
  valid_to date,
  rank integer not null,
  unique nulls not distinct (kind, source, valid_from, valid_to)
);

-- Messages and rows that could not be applied, each exactly once.
create table control.dead_letters (
  fact_set text not null references control.fact_sets,
  sequence bigint not null,
  item integer not null,
  code text not null,
  reason text not null,
  subject text not null,
  frame text,
  source text,
  file text,
  line bigint,
  payload text not null,
  status text not null default 'held' check (status in ('held', 'discarded', 'applied')),
  primary key (fact_set, sequence, item)
);

-- Symbols whose facts changed since a generation was last derived; committed with the facts.
create table control.dirty (
  generation integer not null references control.generations on delete cascade,
  symbol text not null,
  reference boolean not null,
  primary key (generation, symbol, reference)
);
comment on column control.dirty.reference is 'true: the security record changed, so identities are resolved again';

grant select, insert, update, delete on all tables in schema control to dds_projector;
grant select on control.generations, control.active, control.fact_sets to dds_api;
