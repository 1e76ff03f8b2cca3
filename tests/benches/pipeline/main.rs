//! Benchmark of the pipeline, from feed files to served read tables.
//!
//! ```sh
//! cargo bench -p tests --bench pipeline -- --symbols 1000 --years 30
//! ```
//!
//! Absolute times depend on the machine. Speeds are therefore also printed as multiples of a yardstick: a plain COPY of
//! the same price bars into a Postgres table with a primary key.

#![expect(clippy::print_stdout, reason = "the figures are the program's output")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use chrono::NaiveDate;
use clap::Parser;
use harness::{Program, Servers, TestApp, generate_market};
use rust_decimal::Decimal;
use store::copy::copy_values;
use tokio_postgres::types::{ToSql, Type};

mod compare;
mod live;
mod yardstick;

const PATIENCE: Duration = Duration::from_secs(1200);

/// Times ingest, projection, rebuilds and live updates.
#[derive(Debug, Parser)]
struct Arguments {
    /// Number of securities in the synthetic market
    #[arg(long, default_value_t = 1000)]
    symbols: u32,
    /// Years of daily bars of each security
    #[arg(long, default_value_t = 30)]
    years: u32,
    /// Number of single dividends that are corrected one after the other, to measure the latency of one event
    #[arg(long, default_value_t = 50)]
    corrections: u32,
    /// Number of new days that are loaded one after the other, to measure the time of each day
    #[arg(long, default_value_t = 20)]
    days: u32,
    /// Vacuum the database after each new day, as autovacuum does overnight in production
    #[arg(long)]
    nights: bool,
    /// Number of bars that are copied into a Postgres table for the yardstick
    #[arg(long, default_value_t = 2_000_000)]
    rows: usize,
    /// Delay of each direction between the programs and Postgres, in milliseconds; 0 adds no relay
    #[arg(long, default_value_t = 0)]
    postgres_delay: u64,
    /// Accepted because Cargo passes it to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

struct BarRow {
    symbol: String,
    date: NaiveDate,
    prices: [Decimal; 4],
    volume: i64,
}

#[derive(Default)]
struct Market {
    bars: u64,
    rows: Vec<BarRow>,
    /// Last line of each symbol in the price files. The key is the symbol.
    last: BTreeMap<String, String>,
}

struct Timed {
    seconds: f64,
    peak_megabytes: u64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let servers = Servers::private().await?;
    let mut builder = TestApp::builder().servers(&servers);
    if arguments.postgres_delay > 0 {
        builder = builder.postgres_delay(Duration::from_millis(arguments.postgres_delay));
    }
    let app = builder.start().await?;
    let folder = app.folder().join("market");
    let until = NaiveDate::from_ymd_opt(2024, 6, 28).context("a date")?;
    let (symbols, years) = (arguments.symbols, arguments.years);
    generate_market(&folder, &format!("--symbols {symbols} --years {years} --seed 7 --until {until}"))?;
    let market = read(&folder, arguments.rows)?;
    // The rates are loaded later, so that days without and with rates can be compared.
    let rates = app.folder().join("fx.csv");
    if folder.join("fx.csv").exists() {
        fs::rename(folder.join("fx.csv"), &rates)?;
    }
    println!("market: {} symbols, {} bars", arguments.symbols, market.bars);

    let copied = copy_as_rows(&app, &market.rows).await?;
    println!("{:32} {:>8.2} M rows/s", "copy of bars as rows with key", copied / 1e6);
    let bars = market.bars;
    let loaded =
        timed(&app, Program::Ingest, &["load", &folder.display().to_string(), "--source", "bench"]).await?;
    report("files -> durable log", &loaded, bars, Some(copied));
    println!("{:32} {:>8.1} bytes a bar", "  log", per_bar(log_bytes(&app).await?, bars));
    let projected = timed(&app, Program::Projector, &["run", "--until-caught-up"]).await?;
    report("log -> served read tables", &projected, bars, Some(copied));
    println!(
        "{:32} {:>8.1} bytes a bar",
        "  postgres, facts and tables",
        per_bar(database_bytes(&app).await?, bars)
    );
    largest_tables(&app, bars).await?;
    for from in ["log", "facts"] {
        let rebuilt = timed(&app, Program::Projector, &["rebuild", "--from", from]).await?;
        report(&format!("rebuild from {from}"), &rebuilt, bars, Some(copied));
    }
    let day_before = until.pred_opt().context("a day before")?.to_string();
    compare::compare(&app, "3", &day_before).await?;
    for generation in ["2", "3"] {
        app.projector(&["drop", generation]).await?.success()?;
    }
    live::live(&app, &arguments, &market, [&folder, &rates], until).await
}

/// Reads the price files and counts their bars. Of all bars, the result contains only the first `rows` bars and the
/// last line of each symbol.
fn read(folder: &Path, rows: usize) -> Result<Market> {
    let mut market = Market::default();
    for path in price_files(folder)? {
        let text = fs::read_to_string(&path)?;
        for line in text.lines().skip(1) {
            market.bars += 1;
            let (symbol, _) = line.split_once(',').context("a price line")?;
            if market.rows.len() < rows {
                market.rows.push(bar_row(line)?);
            }
            match market.last.get_mut(symbol) {
                Some(last) => line.clone_into(last),
                None => drop(market.last.insert(symbol.to_owned(), line.to_owned())),
            }
        }
    }
    Ok(market)
}

fn price_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("prices")));
    files.sort();
    Ok(files)
}

fn bar_row(line: &str) -> Result<BarRow> {
    let mut fields = line.split(',');
    let mut next = || fields.next().context("a field");
    let (symbol, date) = (next()?.to_owned(), next()?.parse()?);
    let prices = [next()?.parse()?, next()?.parse()?, next()?.parse()?, next()?.parse()?];
    Ok(BarRow { symbol, date, prices, volume: next()?.parse()? })
}

/// Measures the yardstick: the rows per second of a binary COPY into a Postgres table with a primary key.
async fn copy_as_rows(app: &TestApp, rows: &[BarRow]) -> Result<f64> {
    let table = "create table public.bar_rows (symbol text, date date, open numeric, high numeric, low numeric, \
                 close numeric, volume bigint, primary key (symbol, date))";
    app.sql(table, &[]).await?;
    let mut client = app.servers().postgres.connect(app.database()).await?;
    let types =
        [Type::TEXT, Type::DATE, Type::NUMERIC, Type::NUMERIC, Type::NUMERIC, Type::NUMERIC, Type::INT8];
    let tuples = rows.iter().map(|row| {
        let [open, high, low, close] = &row.prices;
        let tuple: Vec<&(dyn ToSql + Sync)> =
            vec![&row.symbol, &row.date, open, high, low, close, &row.volume];
        tuple
    });
    let started = Instant::now();
    let transaction = client.transaction().await?;
    copy_values(&transaction, "copy public.bar_rows from stdin binary", &types, tuples).await?;
    transaction.commit().await?;
    Ok(rows.len() as f64 / started.elapsed().as_secs_f64())
}

async fn timed(app: &TestApp, program: Program, arguments: &[&str]) -> Result<Timed> {
    let started = Instant::now();
    let mut process = app.spawn(program, arguments).await?;
    let status = format!("/proc/{}/status", process.pid());
    let mut peak_megabytes = 0;
    while process.exit_status()?.is_none() {
        peak_megabytes = peak_megabytes.max(peak_memory(&status));
        anyhow::ensure!(started.elapsed() < PATIENCE, "{program} takes too long");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let seconds = started.elapsed().as_secs_f64();
    let ended = process.wait(PATIENCE).await?;
    anyhow::ensure!(ended.success(), "{program} {arguments:?}: {ended}\n{}", process.log_tail(20));
    Ok(Timed { seconds, peak_megabytes })
}

fn peak_memory(status: &str) -> u64 {
    let status = fs::read_to_string(status).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() / 1024
}

async fn largest_tables(app: &TestApp, bars: u64) -> Result<()> {
    let tables = "select schemaname || '.' || relname as name, pg_total_relation_size(relid) as bytes, \
                  pg_indexes_size(relid) as indexes from pg_stat_user_tables where relname <> 'bar_rows' \
                  order by 2 desc limit 6";
    for row in app.sql(tables, &[]).await? {
        let (name, bytes, indexes): (String, i64, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let [bytes, indexes] = [bytes, indexes].map(|bytes| per_bar(bytes.unsigned_abs(), bars));
        println!("{:32} {bytes:>8.1} bytes a bar, {indexes:.1} of them indexes", format!("    {name}"));
    }
    Ok(())
}

/// Size of the database without `bar_rows`, the table that [`copy_as_rows`] fills.
async fn database_bytes(app: &TestApp) -> Result<u64> {
    let size: i64 = app
        .sql_value("select pg_database_size(current_database()) - pg_total_relation_size('bar_rows')")
        .await?;
    Ok(size.unsigned_abs())
}

async fn log_bytes(app: &TestApp) -> Result<u64> {
    let context = async_nats::jetstream::new(app.nats().await?);
    let mut stream = context.get_stream(&app.endpoints().stream).await?;
    Ok(stream.info().await?.state.bytes)
}

fn per_bar(bytes: u64, bars: u64) -> f64 {
    bytes as f64 / bars as f64
}

fn report(what: &str, timed: &Timed, bars: u64, copied: Option<f64>) {
    let speed = bars as f64 / timed.seconds;
    let ratio = copied.map_or_else(String::new, |copied| format!("{:>6.2} x copy", speed / copied));
    println!(
        "{what:32} {:>8.2} M bars/s {ratio:>14} {:>8.1} s {:>6} MB at most",
        speed / 1e6,
        timed.seconds,
        timed.peak_megabytes
    );
}
