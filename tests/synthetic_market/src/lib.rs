//! A synthetic market in the canonical CSV format, for demonstrations, benchmarks and tests.
//!
//! Invariant: the same arguments always give the same bytes. The code therefore uses neither floats nor unordered maps.

mod csv_row;
mod distributions;
mod exchange_rates;
mod familiar_tickers;
mod funds;
mod market_writer;
mod naming;
mod planted_faults;
mod price_walk;
mod random;
mod regular_ex_dates;
mod revisions;
mod security_plan;
mod security_rows;
mod security_shape;
mod session_positions;
mod share_changes;
mod synthetic_market;
#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use chrono::{NaiveDate, Utc};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use market::metrics::calendar::new_york_date;
use telemetry::counted;

use market_writer::RowCounts;
pub use revisions::{REVISIONS, Revision, write_revisions};
use synthetic_market::SyntheticMarket;

/// Writes a synthetic market as canonical CSV files, without real companies or prices.
///
/// The same arguments give the same bytes on every machine. A market of 60 symbols or more has an example of every
/// case: all payment frequencies, dividend kings and aristocrats, cuts, suspensions, special dividends, splits, funds
/// with holdings, a fund with listings in three currencies, receipts of companies that report in other currencies,
/// renamed securities.
#[derive(Debug, Clone, clap::Parser)]
pub struct GenerateArgs {
    /// Number of securities, including the benchmark SPY. 60 securities are enough for one example of every case.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=naming::MAX_SYMBOLS as i64))]
    pub symbols: u32,
    /// Years of daily prices.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=60))]
    pub years: u32,
    /// Seed of all random numbers.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Output folder: new, empty, or of an earlier run. Files of an earlier run are replaced.
    #[arg(long)]
    pub out: PathBuf,
    /// Last day of the history (YYYY-MM-DD); default: today in New York.
    #[arg(long)]
    pub until: Option<NaiveDate>,
    /// Well-known tickers (KO, MSFT, SCHD) for some of the first 60 securities; the figures stay synthetic.
    #[arg(long)]
    pub familiar_tickers: bool,
    /// Percentage of the securities that get one deliberate fault in their rows; default: 0. The file planted.list in
    /// the output folder has symbol, date and kind of each fault. A security without a suitable row gets no fault.
    /// Faults in payments need four years of history.
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub faults: u32,
    /// Print the summary as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Writes the market and returns a summary. Shows its progress on a terminal.
pub fn generate(args: &GenerateArgs) -> anyhow::Result<String> {
    let until = args.until.unwrap_or_else(|| new_york_date(Utc::now()));
    let market = SyntheticMarket {
        familiar_tickers: args.familiar_tickers,
        fault_percent: args.faults,
        ..SyntheticMarket::new(u64::from(args.symbols), args.years, args.seed, until)?
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let progress = progress(market.symbols);
    let started = Instant::now();
    let counts = market_writer::write_market(&market, &args.out, threads, &progress)?;
    progress.finish_and_clear();
    Ok(summary(args, &market, counts, started.elapsed()))
}

/// Progress bar on a terminal, hidden elsewhere.
fn progress(symbols: u64) -> ProgressBar {
    let terminal = std::io::stderr().is_terminal();
    let target = if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} securities, {eta} left");
    ProgressBar::with_draw_target(Some(symbols), target)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn summary(args: &GenerateArgs, market: &SyntheticMarket, counts: RowCounts, elapsed: Duration) -> String {
    let (first, last) = (market.sessions.day(market.sessions.first), market.sessions.last_day());
    let [dividends, splits, fundamentals, etfs, holdings] = counts.rows;
    let milliseconds = (elapsed.as_secs() * 1_000 + u64::from(elapsed.subsec_millis())).max(1);
    let rate = u128::from(counts.bars) * 1_000 / u128::from(milliseconds);
    if args.json {
        return serde_json::json!({
            "out": args.out, "seed": args.seed, "from": first, "until": last, "files": counts.files,
            "bytes": counts.bytes, "securities": args.symbols, "prices": counts.bars, "dividends": dividends,
            "splits": splits, "planted_faults": counts.planted, "fundamentals": fundamentals, "etfs": etfs, "holdings": holdings,
            "exchange_rates": counts.rates,
            "milliseconds": milliseconds, "bars_per_second": rate,
        })
        .to_string();
    }
    let planted = match counts.planted {
        0 => String::new(),
        planted => format!("\n{}: planted.list", counted(planted, "planted fault")),
    };
    format!(
        "synthetic market {first} to {last} in {}: {}, {} kB\n\
         {}, {}, {}, {}, {fundamentals} fundamentals, {}, {}, {}{planted}\nwritten in {}.{:03} s",
        args.out.display(),
        counted(counts.files, "file"),
        counts.bytes / 1_000,
        counted(args.symbols, "security"),
        counted(counts.bars, "bar"),
        counted(dividends, "dividend"),
        counted(splits, "split"),
        counted(etfs, "ETF"),
        counted(holdings, "holding"),
        counted(counts.rates, "exchange rate"),
        milliseconds / 1_000,
        milliseconds % 1_000,
    )
}
