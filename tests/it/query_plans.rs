//! Query plans of the frequent queries on large tables. Each plan must use an expected index and read few rows.
//!
//! The checked properties apply to every version of Postgres, although the plans of different versions differ.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use harness::TestApp;
use serde_json::Value;
use tokio_postgres::{Client, NoTls};

/// SQL that fills a market of 3,000 symbols, each with a hundred dividends and twenty years of prices. Only the sizes
/// and the keys of the tables are realistic.
const FILL: &str = "
insert into version (generation, sequence, benchmark, method_version) values (1, 1, 'SPY', '1') on conflict do nothing;
insert into stocks select 'S' || n, 'Name ' || n, 'XNYS', 'stock', 'Sector ' || n % 11, null, 'US', 'USD', true, null, n, date '2024-06-14', n, true, n % 9,
  'ttm', 1, 'USD', 'quarterly', date '2024-06-14' + n % 90, n % 30, 0, now(), 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, false, false, 0, false, 0, 0, '[]', '{}', '{}', '{}', '{}', '{}'
  from generate_series(1, 3000) n;
insert into symbols select symbol, symbol from stocks;
insert into identities select symbol, '{}' from stocks;
insert into factors select symbol, '[]' from stocks;
insert into quotes (symbol, name, currency, source, updated_at) select symbol, name, currency, 'eod', now() from stocks;
insert into fundamentals (symbol, name, updated_at) select symbol, name, now() from stocks;
insert into metrics (symbol, currency, price_currency, as_of, dividend_status, forward_basis, ttm_payment_count, ttm_complete, frequency, increase_streak_years, streak_lower_bound, streak_at_risk,
    payment_streak_years, cuts_10y, payment_count, is_dividend_aristocrat, is_dividend_king, next, annual_totals, flags, quarantined, method_version)
  select symbol, 'USD', 'USD', date '2024-06-14', 'active', 'none', 4, true, 'quarterly', 0, false, false, 0, 0, 0, false, false, 'null', '[]', '[]', '[]', '1' from stocks;
insert into dividends select symbol || '-' || n, symbol, date '2024-09-30' - n * 91 + substr(symbol, 2)::integer % 60, date '2024-10-20' - n * 91 + substr(symbol, 2)::integer % 60, null, null, 1, 'declared', 1, 'USD', 'regular',
  'regular', null, 'quarterly', 4, 'paid', 1, 1, 1, 1, 'source', 0, now() from stocks, generate_series(1, 100) n;
insert into splits select 's', symbol, date '2020-01-01' - substr(symbol, 2)::integer, null, null, 1, 2, 2, '2:1', 'forward', 1, 1, 'effective', 0, now() from stocks;
insert into changes (kind, symbol, id, date, position, at)
  select 'dividends', symbol, id, ex_date, row_number() over (order by ex_date), now() - interval '1 year' + n * interval '1 second'
  from (select symbol, id, ex_date, row_number() over (order by ex_date) as n from dividends) d;
insert into changes (kind, symbol, id, date, position, at) select 'splits', symbol, id, ex_date, 1, now() from splits;
insert into changes (kind, symbol, id, position, at)
  select kind, symbol, '', 1, now() from stocks, unnest(array['factors', 'events', 'statuses', 'lists']) kind;
insert into prices select symbol, year, 0, '', '', '', '', '' from stocks, generate_series(2005, 2024) year;
insert into etfs (symbol, name, type, currency, is_active, pays_dividend, held_rows, updated_at, holdings_as_of, sector_weights, country_weights)
  select 'E' || n, 'Fund ' || n, 'etf', 'USD', true, true, 0, now(), date '2024-06-14', '[]', '[]' from generate_series(1, 500) n;
insert into symbols select symbol, symbol from etfs;
insert into holdings (etf_symbol, rank, symbol, name, weight, as_of)
  select e.symbol, rank, 'S' || rank, 'Name', 1, date '2024-06-14' - 91 * q from etfs e, generate_series(1, 50) rank, generate_series(0, 3) q;
insert into quarantine select symbol, kind, date '2024-06-14', n::text, 'amount', '', 'test', n
  from stocks, unnest(array['dividend', 'split']) kind, generate_series(1, 10) n;
insert into changes (kind, symbol, id, position, at) select 'symbols', symbol, symbol || 'X', 1, now() from stocks;
insert into facts.frames select int4send(n), n, 'dividend', 'v', 'r' || (n / 10), 'f', 1, 1 from generate_series(1, 30000) n;
insert into facts.batch_runs select frame, 'r' || (sequence / 10 + 1), sequence + 10 from facts.frames where sequence <= 20;
insert into facts.run_changes select 'r' || n, n, 'excluded', '', now(), 'o' from generate_series(1, 3000) n;
insert into facts.records select symbol, 'dividend', 'v', '' from stocks;
insert into facts.records select 'EURC' || substr(n::text, 2) || year, 'fx', 'v', '' from generate_series(100, 199) n, generate_series(2005, 2024) year;
insert into facts.superseded_records select symbol, kind, source, '' from facts.records where kind = 'fx';
insert into facts.bars select symbol, 'v', year, null, 0, '', '', '', '', '', '' from stocks, generate_series(2005, 2024) year;
insert into facts.superseded_records select symbol, 'dividend', 'v', '' from stocks;
insert into facts.superseded_bars select symbol, 'v', year, 1, '' from stocks, generate_series(2020, 2024) year;
insert into facts.symbol_links select n, 'S' || n from generate_series(1, 3000) n union select n, 'T' || n from generate_series(1, 3000) n;
insert into version_inputs (fact_set, method_version, program_version, benchmark, policy, rules, journal) values ('facts', '1', '1', 'SPY', '{}', '{}', 'j');
insert into versions select 1000 + n, 1, n, false, date '2024-06-14', (select max(id) from version_inputs), timestamptz '2020-01-01' + n * interval '1 minute'
  from generate_series(1, 30000) n;
insert into factor_changes select symbol, n, now() from stocks, generate_series(1, 10) n;
insert into notices select n, symbol, 'declared/r', 'declared', 'dividends', 'r', date '2024-06-14', 'data', false, null, null, now()
  from stocks, generate_series(1, 20) n;
analyze";

/// SQL file with the indexes of a generation. They are created after the first rows are written.
const INDEXES: &str = "../schema/store/generation/read_indexes.sql";
/// Tables that grow with time. They have a row for every day, dividend, split, snapshot, quarantined row, batch or
/// commit.
const GROWING: [&str; 15] = [
    "dividends",
    "prices",
    "splits",
    "holdings",
    "changes",
    "quarantine",
    "frames",
    "records",
    "bars",
    "superseded_records",
    "superseded_bars",
    "symbol_links",
    "versions",
    "factor_changes",
    "notices",
];
const STOCKS: [&str; 6] = ["stocks", "symbols", "quotes", "metrics", "fundamentals", "factors"];

struct HotQuery {
    name: &'static str,
    /// Realistic values of the query's parameters, in SQL.
    values: &'static str,
    /// Indexes of growing tables. The query must use at least one of these indexes, and no other index of a growing
    /// table. The list is empty if the query reads no growing table.
    indexes: &'static [&'static str],
    /// Maximum number of rows that one execution may read from growing tables.
    rows: u64,
}

const fn hot(
    name: &'static str,
    values: &'static str,
    indexes: &'static [&'static str],
    rows: u64,
) -> HotQuery {
    HotQuery { name, values, indexes, rows }
}

const HOT: [HotQuery; 43] = [
    hot("stocks/quote", TWO_POSITIONS, &[], 0),
    hot("stocks/metrics", TWO_POSITIONS, &[], 0),
    hot("stocks/snapshot", TWO_POSITIONS, &[], 0),
    hot("stocks/fundamentals", TWO_POSITIONS, &[], 0),
    hot(
        "stocks/dividends",
        "array['S7']",
        &["dividends_by_symbol", "quarantine_by_symbol", "versions_pkey"],
        1000,
    ),
    hot("stocks/splits", "array['S7']", &["splits_pkey", "quarantine_by_symbol", "versions_pkey"], 50),
    hot("stocks/events", "array['S7']", &["splits_pkey", "dividends_by_symbol"], 1000),
    hot("prices/prices", "array['S7'], 2014, 2147483647", &["prices_pkey", "changes_pkey"], 50),
    hot("prices/latest", "array['S7']", &["prices_pkey"], 10),
    // Five years of two symbols. Without the bound of the ex-date, the plan would read all their dividends.
    hot(
        "portfolio/received",
        "array['S7','S8'], array[date '2019-06-17', '2020-01-01'], '2019-06-17', '2024-06-17', 100001",
        &["dividends_by_symbol"],
        100,
    ),
    hot("portfolio/splits", TWO_SYMBOLS, &["splits_pkey"], 10),
    hot("etfs/detail", "array[0, 1], array['E7', 'E8']", &[], 0),
    hot("etfs/holdings", "array['E7'], null", &["holdings_pkey"], 150),
    // The table has four snapshots of each of 500 funds, and only the newest snapshot is served.
    hot("stocks/etf_holders", "array['S7']", &["holdings_by_symbol"], 2000),
    // The query reads all rows of two months, out of 300,000 rows.
    hot("dividends/ex_dates", CALENDAR, &["dividends_by_ex_date"], 3000),
    hot("dividends/ex_dates_descending", CALENDAR, &["dividends_by_ex_date"], 3000),
    hot("dividends/payment_dates", CALENDAR, &["dividends_by_payment_date"], 3000),
    hot("dividends/payment_dates_descending", CALENDAR, &["dividends_by_payment_date"], 3000),
    hot(
        "splits/calendar",
        "date '2019-12-01', date '2020-01-31', null, null, null, null, null, null",
        &["splits_by_ex_date"],
        40,
    ),
    hot("dividends/history", HISTORY, OF_HISTORY, 500),
    hot("dividends/history_ascending", HISTORY, OF_HISTORY, 500),
    hot(
        "changes/dividends",
        "null, '1924-06-17', 299000, null, null, null, null, 1001",
        CHANGED_DIVIDENDS,
        3000,
    ),
    // The generic plan reads the splits of every stock.
    hot("changes/splits", "array['S7'], '1924-06-17', 0, null, null, null, null, 101", CHANGED_SPLITS, 4000),
    hot("changes/events", CHANGED_VALUES, CHANGED, 400),
    hot("changes/factors", CHANGED_VALUES, CHANGED, 400),
    hot("changes/statuses", CHANGED_VALUES, CHANGED, 400),
    hot("changes/lists", CHANGED_VALUES, CHANGED, 400),
    hot(
        "changes/notices",
        "array['S7'], 5, true, 'S7', 'x', 101, array['declared'], array['data'], false",
        &["notices_pkey", "notices_by_symbol"],
        25,
    ),
    hot(
        "changes/newest_notices",
        "array['S7', 'S8'], array['declared'], array['data'], false",
        &["notices_by_symbol"],
        50,
    ),
    hot("changes/since", "now()", &["versions_by_time"], 2),
    hot("changes/securities", "array[0, 1], array['S7', 'S8']", CHANGED, 10),
    hot("changes/other_symbols", TWO_SYMBOLS, &[], 0),
    // past/revisions is left out, because it compares every version with the one before.
    hot("past/current_version", "", &[], 0),
    hot("past/named_version", "1, 25000, null", &["versions_by_generation", "versions_pkey"], 10),
    hot("past/version_at", "'2020-01-08'", &["versions_by_time"], 5),
    hot(
        "past/facts",
        "array['S7']",
        &[
            "records_pkey",
            "bars_pkey",
            "superseded_records_by_symbol",
            "superseded_bars_pkey",
            "symbol_links_by_symbol",
            "symbol_links_pkey",
            "frames_pkey",
        ],
        100,
    ),
    hot(
        "past/rates",
        "array['EURC07', 'EURC08'], 2014, 2016",
        &["records_of_rates", "superseded_records_of_rates"],
        100,
    ),
    hot("past/batches", "array['\\x00000007'::bytea, '\\x00000008']", &["frames_pkey"], 2),
    hot("past/factors_changed", "'S7', 100000, now()", &["factor_changes_pkey"], 10),
    hot("prices/market", "2024, 2024, null, 'S5', 250", &["prices_pkey"], 1500),
    hot("bulk/quotes", TWO_SYMBOLS, &[], 0),
    hot("bulk/metrics", TWO_SYMBOLS, &[], 0),
    hot(
        "bulk/dividends",
        "array['S7','S8'], '2019-06-17', null, 20, array['declared','paid']",
        &["dividends_by_symbol"],
        100,
    ),
];
const TWO_POSITIONS: &str = "array[0, 1], array['S7', 'S8']";
const TWO_SYMBOLS: &str = "array['S7','S8']";
const CALENDAR: &str = "'2024-06-17', '2024-08-17', null, null, null, null, null, null, false, null, null, null, null, 101, null, null, null, null, null";
const HISTORY: &str = "array['S7','S8'], '2019-06-17', null, null, array['declared','paid'], null, null, null, null, 101, null, null, null, null";
const OF_HISTORY: &[&str] = &["dividends_by_symbol", "quarantine_by_symbol", "versions_pkey"];
const CHANGED_VALUES: &str = "null, 0, true, '', 101";
const CHANGED: &[&str] = &["changes_by_position", "changes_pkey"];
const CHANGED_DIVIDENDS: &[&str] = &["changes_by_position", "changes_pkey", "dividends_by_symbol"];
const CHANGED_SPLITS: &[&str] = &["changes_by_position", "changes_pkey", "splits_pkey", "splits_by_ex_date"];

#[derive(Debug, Default)]
struct Reads {
    /// Tables that were read by a sequential scan.
    scanned: BTreeSet<String>,
    indexes: BTreeSet<String>,
    /// Number of rows that were read from growing tables, including rows removed by a filter.
    rows: f64,
}

impl Reads {
    fn add(&mut self, node: &Value) {
        let kind = node["Node Type"].as_str().unwrap_or_default();
        let table = node["Relation Name"].as_str();
        if let Some(table) = table.filter(|_| kind == "Seq Scan") {
            self.scanned.insert(table.to_owned());
        }
        if let Some(index) = node["Index Name"].as_str() {
            self.indexes.insert(index.to_owned());
        }
        if table.is_some_and(|table| GROWING.contains(&table)) {
            let number = |name: &str| node[name].as_f64().unwrap_or_default();
            let looked_at = number("Actual Rows")
                + number("Rows Removed by Filter")
                + number("Rows Removed by Index Recheck");
            self.rows += looked_at * number("Actual Loops");
        }
        for child in node["Plans"].as_array().into_iter().flatten() {
            self.add(child);
        }
    }

    fn faults(&self, query: &HotQuery, mode: Mode) -> Vec<String> {
        let mut faults = Vec::new();
        let is_large =
            |table: &str| GROWING.contains(&table) || mode == Mode::Custom && STOCKS.contains(&table);
        for table in self.scanned.iter().filter(|table| is_large(table)) {
            faults.push(format!("reads all of {table}"));
        }
        let of_growing =
            |index: &&String| GROWING.iter().any(|table| index.starts_with(&format!("{table}_")));
        let used: Vec<&String> = self.indexes.iter().filter(of_growing).collect();
        if used.is_empty() != query.indexes.is_empty() {
            faults.push(format!("uses {used:?}, expected one of {:?}", query.indexes));
        }
        for index in used.iter().filter(|index| !query.indexes.contains(&index.as_str())) {
            faults.push(format!("uses {index}, expected one of {:?}", query.indexes));
        }
        if self.rows > query.rows as f64 {
            faults.push(format!("reads {} rows, expected at most {}", self.rows, query.rows));
        }
        faults
    }
}

/// Kind of plan of a prepared statement. A custom plan is made for the values of one execution. After some executions,
/// Postgres may switch to a generic plan, which is made without values.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    Custom,
    Generic,
}

/// Last part of some queries on earlier facts.
const STATES: &str = include_str!("../../schema/store/queries/past/states.sql");

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

async fn execute(client: &Client, query: &HotQuery, mode: Mode) -> Result<Value> {
    let folders = ["../api/queries", "../schema/store/queries"];
    let paths = folders.map(|folder| file(&format!("{folder}/{}.sql", query.name)));
    let path = paths.iter().find(|path| path.exists()).context("a file of the statement")?;
    let sql = std::fs::read_to_string(path)?.replace("{states}", STATES).replace("{facts}", "facts");
    let mode = match mode {
        Mode::Custom => "force_custom_plan",
        Mode::Generic => "force_generic_plan",
    };
    client
        .batch_execute(&format!("set plan_cache_mode = {mode}; deallocate all; prepare hot as {sql}"))
        .await?;
    let values = if query.values.is_empty() { String::new() } else { format!("({})", query.values) };
    let explain = format!("explain (analyze, timing off, summary off, format json) execute hot {values}");
    let plan: Value = client.query_one(&explain, &[]).await?.try_get(0)?;
    Ok(plan[0]["Plan"].clone())
}

#[tokio::test]
async fn hot_queries_run_by_index_at_a_size_that_matters() -> Result<()> {
    let app = TestApp::start().await?;
    let (client, connection) = tokio_postgres::connect(&app.endpoints().database_url, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute("set search_path = read_g1, control").await?;
    client.batch_execute(FILL).await.context("filling the tables")?;
    client.batch_execute(&std::fs::read_to_string(file(INDEXES))?).await?;
    let mut faults = Vec::new();
    for query in &HOT {
        for mode in [Mode::Custom, Mode::Generic] {
            let plan = execute(&client, query, mode).await.with_context(|| query.name.to_owned())?;
            let mut reads = Reads::default();
            reads.add(&plan);
            let found = reads.faults(query, mode);
            if !found.is_empty() {
                faults.push(format!("{} ({mode:?}): {}\n{plan:#}", query.name, found.join("; ")));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}
