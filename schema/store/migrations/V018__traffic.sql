-- Traffic of all instances of the API, from which the status of the service is computed, and planned work.

create table accounts.traffic_minutes (
  minute timestamptz primary key,
  calls bigint not null,
  failures bigint not null
);
comment on table accounts.traffic_minutes is 'calls of all instances by minute; a minute without calls has no row';
comment on column accounts.traffic_minutes.failures is 'calls that were answered with a status of 500 or more';

create table accounts.traffic_hours (
  hour timestamptz not null,
  endpoint_group text not null,
  failures bigint not null,
  durations integer[] not null,
  primary key (hour, endpoint_group)
);
comment on table accounts.traffic_hours is 'calls of all instances by hour and group of endpoints';
comment on column accounts.traffic_hours.durations is 'calls by duration: one count for each bucket of dds_http_request_duration_seconds, and one for longer calls';

grant select, insert, update, delete on accounts.traffic_minutes, accounts.traffic_hours to dds_api;

create table accounts.maintenance (
  id bigint generated always as identity primary key,
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  description text not null,
  check (starts_at < ends_at)
);
comment on table accounts.maintenance is 'planned work that the status of the service announces';
grant select on accounts.maintenance to dds_api;
