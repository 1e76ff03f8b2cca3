-- Values that the gate measured, to show how many loads a limit would have held.
create table control.measured_loads (
  run text not null,
  source text not null,
  kind text not null,
  expectation text not null,
  value numeric not null,
  measured_at timestamptz not null default now(),
  primary key (run, kind, expectation)
);
create index measured_loads_by_source on control.measured_loads (source, measured_at);
comment on table control.measured_loads is 'effects of loads at their first comparison by the gate; a later comparison of a load changes nothing';
comment on column control.measured_loads.value is 'in the unit of the expectation: percent, securities, rows or sessions';
grant select, insert, update, delete on control.measured_loads to dds_projector;
