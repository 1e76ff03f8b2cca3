-- What clients that keep a copy of the served rows are told: the newest change of every row, by position. Positions are in
-- the order of commits. Which rows were served when is no function of the log, so none of this is part of a generation.
create sequence control.positions;

create table control.journal (
  one boolean primary key default true check (one),
  id text not null,
  begins bigint not null,
  begun_at timestamptz not null
);
comment on column control.journal.id is 'names this journal: a position of another database means nothing here';
comment on column control.journal.begins is 'changes up to this position are not told any more';
insert into control.journal (id, begins, begun_at)
values (substr(replace(gen_random_uuid()::text, '-', ''), 1, 8), 0, now());

create table control.changes (
  kind text collate "C" not null,
  symbol text collate "C" not null,
  id text collate "C" not null,
  date date,
  position bigint not null,
  at timestamptz not null,
  gone jsonb,
  live boolean not null generated always as (gone is null) stored,
  primary key (kind, symbol, id)
);
comment on column control.changes.id is 'id of the row; empty: every row of the symbol that has no change of its own';
comment on column control.changes.gone is 'the row as it was last served, when it is served no more';
create index changes_by_position on control.changes (kind, position, live, symbol);
create index changes_by_time on control.changes (at, position);

grant select, insert, update, delete on control.journal, control.changes to dds_projector;
grant usage on sequence control.positions to dds_projector;
grant select on control.journal, control.changes to dds_api;

do $$
declare generation text;
begin
  for generation in select nspname from pg_namespace where nspname ~ '^read_g[0-9]+$' loop
    execute format('alter table %I.version add column position bigint not null default 0', generation);
  end loop;
end $$;
