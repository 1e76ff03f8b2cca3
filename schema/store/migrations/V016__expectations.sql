-- Limits that the gate of a load uses instead of the defaults.
create table control.expectations (
  source text not null,
  kind text not null,
  expectation text not null,
  limit_value numeric,
  primary key (source, kind, expectation)
);
comment on table control.expectations is 'limits for the effect of a load, by source and kind; all others have their defaults';
comment on column control.expectations.limit_value is 'null: the expectation is off';
grant select, insert, update, delete on control.expectations to dds_projector;
