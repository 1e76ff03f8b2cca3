-- Values that the gate measured, to show how many loads a limit would have held.
create table control.measured_loads (
  run text not null,
  kind text not null,
  expectation text not null,
  value numeric not null,
  primary key (run, kind, expectation)
);
comment on table control.measured_loads is 'effects of loads, as the gate measured them';
comment on column control.measured_loads.value is 'in the unit of the expectation: percent, securities, rows or sessions';
grant select, insert, update, delete on control.measured_loads to dds_projector;
