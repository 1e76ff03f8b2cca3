-- Views of one generation for analysts, in plain columns. Run once, with the new schema analyst_g<N> first in
-- search_path and the generation's schema read_g<N> second. In each definition, the name of the view means the table,
-- because the view does not exist yet.
create view version as select * from version;
create view symbols as select * from symbols;
create view stocks as select * from stocks;
create view quotes as select * from quotes;
create view fundamentals as select * from fundamentals;
create view metrics as select * from metrics;
create view dividends as select * from dividends;
create view splits as select * from splits;
create view quarantine as select * from quarantine;
create view etfs as select * from etfs;
create view holdings as select * from holdings;
create view sectors as select * from sectors;
create view prices as
  select p.symbol, p.year, b.* from prices p cross join lateral unpacked(p) b;
comment on view prices is 'raw bars of the winning source, one per session; a condition on symbol or year unpacks no other';
create view factors as
  select f.symbol, (a ->> 'ex_date')::date as ex_date, (a -> 'split' ->> 'from')::numeric as split_from,
         (a -> 'split' ->> 'to')::numeric as split_to, (a ->> 'dividend_factor')::numeric as dividend_factor,
         (a ->> 'dividend')::numeric as dividend, (a ->> 'value')::numeric as value,
         coalesce(a -> 'price_only' ->> 'from', '1')::numeric as price_only_from,
         coalesce(a -> 'price_only' ->> 'to', '1')::numeric as price_only_to
  from factors f
  cross join lateral json_array_elements(f.factors) a;

comment on view version is 'state of this generation: one row';
comment on column version.one is 'always true: the view has one row';
comment on column version.generation is 'number of the generation';
comment on column version.sequence is 'last message of the log that the tables contain';
comment on column version.as_of is 'market date of all figures: the newest session of the log';
comment on column version.benchmark is 'security whose returns are the benchmark of beta';
comment on column version.method_version is 'version of the rules that derived the tables';
comment on column version.policy is 'source policy of the tables; without ranks, the newest row is on top';
comment on column version.is_repeated is 'true: generation and sequence were served before with other data';
comment on column version.position is 'position of the newest change; it rises with every derivation';
comment on view symbols is 'every symbol that a security has or had, and its identifiers';
comment on column symbols.symbol is 'current or former symbol, identifier (isin:US1912161007), or one of them with a market (KO@XNYS); if several securities have an identifier, a space and the symbol follow it';
comment on column symbols.canonical is 'symbol of the security in the other views';
comment on view stocks is 'one row per security, with its headline figures';
comment on view quotes is 'latest close of each security, with averages and the range of a year';
comment on view fundamentals is 'newest fundamentals of each security';
comment on view metrics is 'dividend metrics of each security';
comment on view dividends is 'paid, declared and projected dividends';
comment on view splits is 'splits and price-only actions';
comment on view quarantine is 'rows that no figure uses, with the reason';
comment on view etfs is 'one row per fund, with its headline figures';
comment on view holdings is 'positions of funds, one snapshot per date';
comment on view sectors is 'one row per sector, with counts and averages';
comment on column prices.symbol is 'canonical symbol';
comment on column prices.year is 'year of the session';
comment on column prices.date is 'session';
comment on column prices.open is 'open as traded, not adjusted; null if the source has only a close';
comment on column prices.high is 'high as traded, not adjusted';
comment on column prices.low is 'low as traded, not adjusted';
comment on column prices.close is 'close as traded, not adjusted';
comment on column prices.volume is 'shares traded';
comment on column prices.vwap is 'volume-weighted average price';
comment on column prices.trade_count is 'number of trades';
comment on view factors is 'price adjustment of each ex-date; multiply earlier prices by split_from / split_to, price_only_from / price_only_to and dividend_factor';
comment on column factors.symbol is 'canonical symbol';
comment on column factors.ex_date is 'ex-date: first session that trades without the distribution';
comment on column factors.split_from is 'shares before the split; 1 without a split';
comment on column factors.split_to is 'shares after the split; 1 without a split';
comment on column factors.dividend_factor is 'multiplier of earlier prices for the cash; 1 without cash';
comment on column factors.dividend is 'cash per share on the share basis of the day, specials included; 0 without cash';
comment on column factors.value is 'cash and spin-off value per share, reinvested by total return; null if paid in another currency than the prices';
comment on column factors.price_only_from is 'numerator of price-only actions: earlier prices are multiplied by from / to, volumes stay; 1 without one';
comment on column factors.price_only_to is 'denominator of price-only actions; 1 without one';

do $$
begin
  -- The views call functions in the generation's schema. The tables of this schema stay inaccessible.
  execute format('grant usage on schema %I, %I to dds_analyst', current_schema(), (current_schemas(false))[2]);
  execute format('grant select on all tables in schema %I to dds_analyst', current_schema());
end $$;
