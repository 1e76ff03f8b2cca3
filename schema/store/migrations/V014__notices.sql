-- Notices of what happened to securities, for feeds and for the change stream.
create table control.notices (
  position bigint not null,
  symbol text collate "C" not null,
  id text collate "C" not null,
  event text not null,
  kind text not null,
  record text,
  date date not null,
  cause text not null,
  is_backfill boolean not null,
  before json,
  after json,
  at timestamptz not null,
  primary key (position, symbol, id)
);
comment on table control.notices is 'what happened to the securities of the served data; deleted after 90 days';
comment on column control.notices.position is 'position of the journal';
comment on column control.notices.id is 'event and record; unique for a symbol within a commit';
comment on column control.notices.record is 'id of the dividend or split';
comment on column control.notices.date is 'day of the event';
comment on column control.notices.is_backfill is 'the event was more than ten sessions old when it became known';
comment on column control.notices.before is 'row before the event, with decimals as text';
comment on column control.notices.after is 'row after the event, with decimals as text';
create index notices_by_symbol on control.notices (symbol, position);
create index notices_by_time on control.notices (at);

grant select, insert, update, delete on control.notices to dds_projector;
grant select on control.notices to dds_api;
