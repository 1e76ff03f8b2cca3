-- Records of every kind except prices, in the schema of a fact set: one row per symbol, kind and source.
-- Names are compared byte by byte. The order is then the same on every server, and comparisons need no language rules.
create table records (
  symbol text collate "C" not null,
  kind text collate "C" not null,
  source text collate "C" not null,
  packed bytea not null,
  primary key (symbol, kind, source)
);
-- Thirty years of dividends have about 6 kB. Kept in the row, they need one read or write.
alter table records set (toast_tuple_target = 8160);
create index records_by_kind on records (kind) where kind in ('security', 'session');
create index records_of_rates on records (left(symbol, 6)) where kind = 'fx';
comment on column records.packed is 'the set of observations (codec::records); projector explain shows them';

-- Symbols that each vendor record had. The observations of the record are stored under each of these symbols.
create table record_ids (
  digest bigint not null,
  symbol text collate "C" not null,
  primary key (digest, symbol)
);
comment on column record_ids.digest is 'of kind, source and the vendor''s id';

-- Years in which a source has dividends. A security without dividends in these years is known to pay none.
create table dividend_feeds (
  source text collate "C" not null,
  year integer not null,
  sequence bigint not null default 0,
  ended bigint,
  primary key (source, year, sequence)
);
comment on column dividend_feeds.sequence is 'first log sequence with such a dividend; 0: unknown';
comment on column dividend_feeds.ended is 'log sequence at which all such dividends were hidden; null: some are visible';
comment on table dividend_feeds is 'calendar years in which a source brought a dividend of any security';

-- Observations that do not count now, for reading the facts in another view of the log. Every observation names its
-- record batch, and frames has the sequence and the run of the batch.
create table superseded_records (
  symbol text collate "C" not null,
  kind text collate "C" not null,
  source text collate "C" not null,
  packed bytea not null
);
create index superseded_records_by_symbol on superseded_records (symbol);
create index superseded_records_of_rates on superseded_records (left(symbol, 6)) where kind = 'fx';
comment on table superseded_records is 'observations that were repeated later, or that belong only to held or excluded runs';
comment on column superseded_records.packed is 'set of observations, as in records';

create table superseded_bars (
  symbol text collate "C" not null,
  source text collate "C" not null,
  year integer not null,
  part integer not null,
  packed bytea not null,
  primary key (symbol, source, year, part)
);
comment on table superseded_bars is 'bars that were replaced by another version of their day, or that belong only to held or excluded runs';
comment on column superseded_bars.part is 'number of the row among those of the year; only the last row gets more bars';
comment on column superseded_bars.packed is 'the columns of bars, in one value; a bar that repeats another bar has no values';

-- Links between symbols that may name the same security: symbols of one security record, and spellings of one symbol.
-- The facts of linked symbols decide which security owns each symbol.
create table symbol_links (
  link bigint,
  symbol text collate "C" not null,
  primary key (link, symbol)
);
create index symbol_links_by_symbol on symbol_links (symbol);
comment on column symbol_links.link is 'digest of a vendor''s security record, or of a symbol with several spellings';

grant select on records, record_ids, dividend_feeds, superseded_records, superseded_bars, symbol_links to dds_api;
