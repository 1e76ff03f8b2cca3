-- Read tables of one generation. Run once in its own schema read_g<N>; names are unqualified (search_path).
-- The tables have the fields of the responses. The structs in market::row have the same columns.

-- State of this generation. Read in one snapshot with the tables, it is the data_version of a response.
create table version (
  one boolean primary key default true check (one),
  generation integer not null,
  sequence bigint not null,
  as_of date,
  benchmark text not null,
  method_version text not null,
  policy json not null default '[]',
  position bigint not null default 0,
  is_repeated boolean not null default false
);
comment on column version.is_repeated is 'true: generation and sequence were served before with other data, so the version is named with its position';
comment on column version.position is 'greater after every derivation (control.positions); clients of a served generation are in step up to here';
comment on column version.policy is 'source policy the tables were derived with';

-- Canonical symbol of each current or former spelling of a security, and of its other addresses: identifiers
-- (isin:US1912161007) and markets (KO@XNYS). If several securities have an address, each has a row with the address, a
-- space and its symbol (market::identity::SecurityDirectory::address_keys).
create table symbols (
  symbol text collate "C" primary key,
  canonical text collate "C" not null
);
create index symbols_by_canonical on symbols (canonical);

-- Identity of each security: its reference record, and the days on which it had each symbol (market::identity). It
-- selects the facts of the security.
create table identities (
  symbol text collate "C" primary key,
  identity json not null
);

-- Digests of a security's rows in each table. Rows with unchanged digests are not written again
-- (projector::write::table lists the tables).
create table digests (
  symbol text collate "C" primary key,
  tables bigint[] not null
);

create table stocks (
  symbol text collate "C" not null,
  name text not null,
  exchange text,
  type text not null,
  sector text,
  industry text,
  country text,
  currency text not null,
  is_active boolean not null,
  delisted_on date,
  price numeric,
  price_date date,
  market_cap bigint,
  pays_dividend boolean,
  dividend_yield numeric,
  yield_basis text,
  annual_dividend numeric,
  dividend_currency text,
  frequency text,
  next_ex_date date,
  increase_streak_years integer,
  held_rows integer not null,
  updated_at timestamptz not null,
  yield_ttm numeric,
  yield_forward numeric,
  payout_ratio numeric,
  growth_1y numeric,
  growth_3y numeric,
  growth_5y numeric,
  growth_10y numeric,
  payment_streak_years integer,
  pe_ratio numeric,
  beta numeric,
  volume bigint,
  is_dividend_aristocrat boolean not null,
  is_dividend_king boolean not null,
  price_age_sessions integer,
  yield_suspect boolean not null,
  change_percent numeric,
  change_percent_ytd numeric,
  indexes json not null,
  identifiers json not null,
  company json not null,
  pricing json not null,
  dividends json not null,
  coverage json not null,
  reporting_market_cap bigint,
  primary key (symbol)
);

create table quotes (
  symbol text collate "C" not null,
  name text not null,
  exchange text,
  sector text,
  currency text not null,
  price numeric,
  open numeric,
  day_high numeric,
  day_low numeric,
  previous_close numeric,
  change numeric,
  change_percent numeric,
  volume bigint,
  avg_volume_30d bigint,
  sma_50 numeric,
  sma_200 numeric,
  year_high numeric,
  year_high_date date,
  year_low numeric,
  year_low_date date,
  market_cap bigint,
  shares_outstanding bigint,
  pe_ratio numeric,
  eps_ttm numeric,
  dividend_yield numeric,
  annual_dividend numeric,
  dividend_currency text,
  price_date date,
  source text not null,
  updated_at timestamptz not null,
  primary key (symbol)
);

create table fundamentals (
  symbol text collate "C" not null,
  name text not null,
  sector text,
  industry text,
  country text,
  website text,
  employees bigint,
  ipo_date date,
  market_cap bigint,
  enterprise_value bigint,
  shares_outstanding bigint,
  float_shares bigint,
  pe_ratio numeric,
  forward_pe numeric,
  peg_ratio numeric,
  pb_ratio numeric,
  ps_ratio numeric,
  ev_to_ebitda numeric,
  eps_ttm numeric,
  book_value_per_share numeric,
  fcf_per_share numeric,
  revenue_ttm numeric,
  net_income_ttm numeric,
  free_cash_flow_ttm numeric,
  gross_margin numeric,
  operating_margin numeric,
  net_margin numeric,
  roe numeric,
  roa numeric,
  payout_ratio numeric,
  fcf_payout_ratio numeric,
  debt_to_equity numeric,
  current_ratio numeric,
  interest_coverage numeric,
  beta numeric,
  fiscal_period_end date,
  reported_currency text,
  as_of date,
  updated_at timestamptz not null,
  primary key (symbol)
);

create table metrics (
  symbol text collate "C" not null,
  currency text not null,
  price_currency text not null,
  as_of date not null,
  price numeric,
  price_date date,
  dividend_status text not null,
  dps_ttm numeric,
  dps_ttm_total numeric,
  dps_forward numeric,
  forward_basis text not null,
  dividend_yield numeric,
  yield_basis text,
  yield_ttm numeric,
  yield_ttm_total numeric,
  yield_forward numeric,
  yield_5y_avg numeric,
  yield_5y_high numeric,
  yield_5y_low numeric,
  ttm_payment_count integer not null,
  ttm_complete boolean not null,
  frequency text not null,
  payments_per_year integer,
  payout_ratio numeric,
  fcf_payout_ratio numeric,
  dividend_cover numeric,
  growth_1y numeric,
  growth_3y numeric,
  growth_5y numeric,
  growth_10y numeric,
  increase_streak_years integer not null,
  streak_lower_bound boolean not null,
  streak_at_risk boolean not null,
  payment_streak_years integer not null,
  streak_started integer,
  latest_increase_date date,
  latest_increase_percent numeric,
  last_cut_date date,
  cuts_10y integer not null,
  first_payment_date date,
  payment_count integer not null,
  is_dividend_aristocrat boolean not null,
  is_dividend_king boolean not null,
  tier text,
  next json not null,
  chowder_number numeric,
  chowder_pass boolean,
  safety text,
  yield_trap_risk boolean,
  total_return_1y numeric,
  total_return_5y numeric,
  volatility_1y numeric,
  beta_5y numeric,
  annual_totals json not null,
  flags json not null,
  quarantined json not null,
  method_version text not null,
  primary key (symbol)
);

create table dividends (
  id text,
  symbol text collate "C" not null,
  ex_date date not null,
  payment_date date,
  record_date date,
  declaration_date date,
  amount numeric not null,
  amount_status text not null,
  adjusted_amount numeric not null,
  currency text not null,
  type text not null,
  reading text,
  special_amount numeric,
  frequency text not null,
  payments_per_year integer,
  status text not null,
  split_factor numeric not null,
  price_factor numeric,
  yield_at_ex numeric,
  change_percent numeric,
  source text not null,
  revision bigint not null,
  updated_at timestamptz not null
);

create table splits (
  id text not null,
  symbol text collate "C" not null,
  ex_date date not null,
  declaration_date date,
  payable_date date,
  from_shares numeric not null,
  to_shares numeric not null,
  ratio numeric not null,
  text text not null,
  type text not null,
  price_factor numeric not null,
  cumulative_price_factor numeric not null,
  status text not null,
  revision bigint not null,
  updated_at timestamptz not null,
  primary key (symbol, ex_date, id)
);

create table quarantine (
  symbol text collate "C" not null,
  kind text not null,
  date date,
  id text,
  reason text not null,
  message text not null,
  source text not null,
  line bigint not null
);
create table etfs (
  symbol text collate "C" not null,
  name text not null,
  exchange text,
  type text not null,
  sector text,
  industry text,
  country text,
  currency text not null,
  is_active boolean not null,
  delisted_on date,
  price numeric,
  price_date date,
  market_cap bigint,
  pays_dividend boolean,
  dividend_yield numeric,
  yield_basis text,
  annual_dividend numeric,
  dividend_currency text,
  frequency text,
  next_ex_date date,
  increase_streak_years integer,
  held_rows integer not null,
  updated_at timestamptz not null,
  issuer text,
  asset_class text,
  category text,
  strategy text,
  index_name text,
  domicile text,
  inception_date date,
  expense_ratio numeric,
  aum numeric,
  nav numeric,
  nav_date date,
  premium_discount numeric,
  distribution_yield_ttm numeric,
  sec_yield_30d numeric,
  is_leveraged boolean,
  is_inverse boolean,
  leverage_factor numeric,
  related_symbol text,
  holdings_count integer,
  holdings_as_of date,
  top_10_weight numeric,
  turnover numeric,
  sector_weights json not null,
  country_weights json not null,
  reporting_market_cap bigint,
  primary key (symbol)
);

create table holdings (
  etf_symbol text collate "C" not null,
  rank integer not null,
  symbol text,
  name text not null,
  asset_type text,
  weight numeric not null,
  shares numeric,
  market_value numeric,
  currency text,
  isin text,
  cusip text,
  figi text,
  sector text,
  country text,
  as_of date not null,
  primary key (etf_symbol, as_of, rank)
);

create table sectors (
  sector text not null,
  slug text not null,
  stock_count integer not null,
  payer_count integer not null,
  etf_count integer not null,
  market_cap bigint,
  avg_yield numeric,
  median_yield numeric,
  weighted_yield numeric,
  max_yield numeric,
  median_payout_ratio numeric,
  median_growth_5y numeric,
  median_pe numeric,
  aristocrat_count integer not null,
  king_count integer not null,
  change_percent_1d numeric,
  change_percent_ytd numeric,
  ex_dates_next_30d integer not null,
  as_of date not null,
  industries json not null,
  currency text not null,
  unconverted_count integer not null,
  primary key (slug)
);
create index dividends_by_symbol on dividends (symbol, ex_date desc);
create index quarantine_by_symbol on quarantine (symbol);

-- Raw bars of the winning source per day: columns of scaled integers in blocks (codec::bars), one row per year.
create table prices (
  symbol text collate "C" not null,
  year integer not null,
  digest bigint not null,
  days bytea not null,
  close bytea not null,
  range bytea not null,
  volume bytea not null,
  extra bytea not null,
  -- The index contains the digest, so that served years are found without reading the rows.
  primary key (symbol, year) include (digest)
);
alter table prices
  alter column days set storage external, alter column close set storage external,
  alter column range set storage external, alter column volume set storage external,
  alter column extra set storage external;
-- A year has 1 to 3 kB. Kept in the row, it needs one read or write instead of four.
-- Each trading day replaces one year of every symbol. Dead rows are vacuumed every other day; otherwise the table would
-- grow by a fifth.
alter table prices set (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.05);

-- Inputs of adjusted prices: splits and dividend factors of each security (market::metrics).
create table factors (
  symbol text collate "C" primary key,
  factors json not null
);
-- Every ex-date rewrites the factors of a security. The fast compression lz4 is used if Postgres supports it.
do $$
begin
  alter table factors alter column factors set compression lz4;
exception when feature_not_supported then
  null;
end $$;

do $$
begin
  execute format('grant usage on schema %I to dds_api', current_schema());
  execute format('grant select on all tables in schema %I to dds_api', current_schema());
end $$;
