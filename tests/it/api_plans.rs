//! How Postgres runs the hot queries once the tables are large: by index, never by reading a table that grows with
//! history from end to end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use harness::TestApp;
use serde_json::Value;
use tokio_postgres::{Client, NoTls};

/// A market of 3,000 symbols with a hundred dividends and twenty years of prices each; only sizes and keys matter.
const FILL: &str = "
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
insert into dividends select symbol || '-' || n, symbol, date '2024-09-30' - n * 91 + length(symbol) * 7, date '2024-10-20' - n * 91, null, null, 1, 'declared', 1, 'USD', 'regular',
  'quarterly', 4, 'paid', 1, 1, 1, 1, 'source', 0, now() from stocks, generate_series(1, 100) n;
insert into splits select 's', symbol, date '2020-01-01', null, null, 1, 2, 2, '2:1', 'forward', 1, 1, 'effective', 0, now() from stocks;
insert into changes (kind, symbol, id, date, position, at)
  select 'dividends', symbol, id, ex_date, row_number() over (order by ex_date), now() - interval '1 year' + n * interval '1 second'
  from (select symbol, id, ex_date, row_number() over (order by ex_date) as n from dividends) d;
insert into changes (kind, symbol, id, date, position, at) select 'splits', symbol, id, ex_date, 1, now() from splits;
insert into changes (kind, symbol, id, position, at) select 'factors', symbol, '', 1, now() from stocks;
insert into prices select symbol, year, 0, '', '', '', '', '' from stocks, generate_series(2005, 2024) year;
insert into etfs (symbol, name, type, currency, is_active, pays_dividend, held_rows, updated_at, sector_weights, country_weights)
  select 'E' || n, 'Fund ' || n, 'etf', 'USD', true, true, 0, now(), '[]', '[]' from generate_series(1, 500) n;
insert into symbols select symbol, symbol from etfs;
insert into holdings (etf_symbol, rank, symbol, name, weight, as_of)
  select e.symbol, rank, 'S' || rank, 'Name', 1, date '2024-06-14' - 91 * q from etfs e, generate_series(1, 50) rank, generate_series(0, 3) q;
analyze";

/// What a generation gets with its first rows.
const INDEXES: &str = "../schema/store/generation/read_indexes.sql";
/// Tables with rows for every day, dividend, split or snapshot.
const GROWING: [&str; 5] = ["dividends", "prices", "splits", "holdings", "changes"];

/// The hot queries with values like those of a request.
const HOT: &[(&str, &str)] = &[
    ("stocks/quote", "array[0, 1], array['S7', 'S8']"),
    ("stocks/metrics", "array[0, 1], array['S7', 'S8']"),
    ("stocks/snapshot", "array[0, 1], array['S7', 'S8']"),
    ("stocks/fundamentals", "array[0, 1], array['S7', 'S8']"),
    ("stocks/dividends", "array['S7'], '2019-06-17', null, null, array['declared','paid']"),
    ("stocks/splits", "array['S7'], '1924-06-17', null, null"),
    ("prices/prices", "array['S7'], 2014, 2147483647"),
    ("prices/latest", "array['S7']"),
    ("etfs/detail", "array[0, 1], array['E7', 'E8']"),
    ("etfs/holdings", "array['E7'], null"),
    ("dividends/ex_dates", CALENDAR),
    ("dividends/ex_dates_descending", CALENDAR),
    ("dividends/payment_dates", CALENDAR),
    ("dividends/payment_dates_descending", CALENDAR),
    ("dividends/history", HISTORY),
    ("dividends/history_ascending", HISTORY),
    ("changes/dividends", "null, '1924-06-17', 299000, null, null, null, null, 1001"),
    ("changes/splits", "array['S7'], '1924-06-17', 0, null, null, null, null, 101"),
    ("changes/since", "now()"),
    ("prices/market", "2024, 2024, null, 'S5', 250"),
    ("bulk/quotes", "array['S7','S8']"),
    ("bulk/metrics", "array['S7','S8']"),
    ("bulk/dividends", "array['S7','S8'], '2019-06-17', null, 20, array['declared','paid']"),
];
const CALENDAR: &str = "'2024-06-17', '2024-07-17', null, null, null, null, null, null, false, null, null, null, null, 101, null, null, null, null";
const HISTORY: &str = "array['S7','S8'], '2019-06-17', null, null, array['declared','paid'], null, null, null, null, 101, null, null, null, null";

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Node types with their indexes or tables, one line a node, indented by depth.
fn shape(plan: &Value, depth: usize, lines: &mut Vec<String>) {
    let text = |name: &str| plan[name].as_str();
    let of =
        text("Index Name").or(text("Relation Name")).map(|name| format!(" on {name}")).unwrap_or_default();
    lines.push(format!("{}{}{of}", "  ".repeat(depth), text("Node Type").unwrap_or_default()));
    for child in plan["Plans"].as_array().into_iter().flatten() {
        shape(child, depth + 1, lines);
    }
}

async fn plan(client: &Client, query: &str, values: &str, mode: &str) -> Result<Vec<String>> {
    let sql = std::fs::read_to_string(file(&format!("../api/queries/{query}.sql")))?;
    client
        .batch_execute(&format!("set plan_cache_mode = {mode}; deallocate all; prepare hot as {sql}"))
        .await?;
    let row =
        client.query_one(&format!("explain (costs off, format json) execute hot ({values})"), &[]).await?;
    let plan: Value = row.try_get(0)?;
    let mut lines = vec![];
    shape(&plan[0]["Plan"], 1, &mut lines);
    Ok(lines)
}

#[tokio::test]
async fn hot_queries_run_by_index_at_a_size_that_matters() -> Result<()> {
    let app = TestApp::start().await?;
    let (client, connection) = tokio_postgres::connect(&app.endpoints().database_url, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute("set search_path = read_g1, control").await?;
    client.batch_execute(FILL).await.context("filling the tables")?;
    client.batch_execute(&std::fs::read_to_string(file(INDEXES))?).await?;
    let mut shapes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (query, values) in HOT {
        // After some runs of a prepared statement Postgres may choose the plan made without its values.
        for mode in ["force_custom_plan", "force_generic_plan"] {
            let lines = plan(&client, query, values, mode).await.with_context(|| (*query).to_owned())?;
            let reads_all =
                |line: &&String| GROWING.iter().any(|table| line.ends_with(&format!("Seq Scan on {table}")));
            assert_eq!(lines.iter().find(reads_all), None, "{query} ({mode}): {lines:#?}");
            shapes.insert(format!("{query} ({mode})"), lines);
        }
    }
    let text: String =
        shapes.iter().map(|(query, lines)| format!("{query}\n{}\n", lines.join("\n"))).collect();
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("plans", text));
    Ok(())
}
