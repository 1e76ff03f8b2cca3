-- Every kind but prices, in the schema of a fact set: what one source said of one symbol, one row a kind.
-- Names are compared byte by byte: the same order on every server, and no rules of a language to look up.
create table records (
  symbol text collate "C" not null,
  kind text collate "C" not null,
  source text collate "C" not null,
  packed bytea not null,
  primary key (symbol, kind, source)
);
-- Thirty years of dividends are about 6 kB: kept in the row, they are one place to write and to read.
alter table records set (toast_tuple_target = 8160);
create index records_by_kind on records (kind) where kind in ('security', 'session');
comment on column records.packed is 'the set of observations (codec::records); projector explain shows them';

-- The symbols that a vendor's record has had: its observations are kept under each of them.
create table record_ids (
  digest bigint not null,
  symbol text collate "C" not null,
  primary key (digest, symbol)
);
comment on column record_ids.digest is 'of kind, source and the vendor''s id';

-- A source carries dividends in these years, so that a security without any is known to pay none.
create table dividend_feeds (
  source text collate "C" not null,
  year integer not null,
  primary key (source, year)
);
comment on table dividend_feeds is 'calendar years in which a source brought a dividend of any security';

grant select on records, record_ids, dividend_feeds to dds_api;
