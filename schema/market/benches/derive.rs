//! Benchmark: derives all metrics of a market from facts in memory, on all cores. The securities share some histories,
//! which together do not fit in the CPU caches.
//!
//! ```sh
//! cargo bench -p market --bench derive -- --symbols 10000 --years 30
//! # A second source with the whole history:
//! cargo bench -p market --bench derive -- --symbols 10000 --years 30 --second-source whole
//! # A second source with all dividends, whose ex-dates are a day later:
//! cargo bench -p market --bench derive -- --symbols 10000 --years 30 --second-dividends 1
//! ```

#![expect(clippy::print_stdout, reason = "the figures are the program's output")]

use std::time::Instant;

use chrono::{DateTime, Days, NaiveDate};
use clap::{Parser, ValueEnum};
use market::bars::{Bar, BarVersion, Bars, MISSING};
use market::day::day_number;
use market::event::{Action, Dividend};
use market::history::{History, Observation, SourceBars, SourcePolicy};
use market::metrics::calendar::is_session;
use market::metrics::{DerivationContext, ExchangeRates, Rules, benchmark, derive};
use market::symbol::Symbol;
use rust_decimal::Decimal;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Calendar year of the newest bars.
const LAST_YEAR: i32 = 2024;

/// Measures the time that deriving all metrics takes.
#[derive(Debug, Parser)]
struct Arguments {
    /// Number of securities in the market
    #[arg(long, default_value_t = 10_000)]
    symbols: usize,
    /// Number of years of daily bars per security
    #[arg(long, default_value_t = 30)]
    years: i32,
    /// Number of distinct histories, which the securities share
    #[arg(long, default_value_t = 200)]
    distinct: usize,
    /// Bars of a second source; no second source if absent
    #[arg(long, value_enum)]
    second_source: Option<SecondSource>,
    /// Days by which the ex-dates of a second source are later; no dividends of a second source if absent
    #[arg(long, value_name = "DAYS")]
    second_dividends: Option<u64>,
    /// Passed by `cargo bench`; without effect
    #[arg(long, hide = true)]
    bench: bool,
}

/// Bars of a second source. They agree with the bars of the first source.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum SecondSource {
    /// All bars
    Whole,
    /// Every other bar, and the first source has only the rest
    Alternating,
    /// The newest bar
    Newest,
}

/// Pseudorandom numbers from a fixed seed, so that every run has the same market.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(self.0 >> 40).unwrap_or_default() % limit
    }
}

fn observed<T: DeserializeOwned>(
    id: Option<String>,
    line: u64,
    record: Value,
) -> anyhow::Result<Observation<T>> {
    Ok(Observation {
        source: "bench".into(),
        id,
        security_ref: None,
        revision: 0,
        action: Action::Put,
        observed_at: DateTime::UNIX_EPOCH,
        line,
        frame: [0; 16],
        record: serde_json::from_value(record)?,
    })
}

/// Builds bars whose close changes by at most about 0.8 % a day, and is halved at each of `splits`.
fn bars(random: &mut Random, sessions: &[NaiveDate], splits: &[NaiveDate]) -> Bars {
    let mut bars = Bars { scale: 2, versions: vec![BarVersion::UNKNOWN], ..Bars::default() };
    let mut close = 40_000 + random.below(80_000);
    let mut due = splits.iter().peekable();
    for date in sessions {
        // The ex-date may be a day without a session.
        if due.next_if(|split| *split <= date).is_some() {
            close /= 2;
        }
        close += close * (random.below(161) - 78) / 10_000;
        let day = day_number(*date);
        let (open, high, low) = (close - 7, close + 31, close - 29);
        let volume = 1_000_000 + random.below(500_000);
        bars.push(Bar { day, open, high, low, close, volume, vwap: MISSING, trade_count: MISSING }, 0);
    }
    bars
}

/// Prices of all sources of a security. `bars` is the whole history.
fn prices(bars: Bars, second: Option<SecondSource>) -> Vec<SourceBars> {
    let source = |source: &str, bars: Bars| SourceBars {
        source: source.into(),
        bars: bars.into(),
        closes_only: Vec::new(),
    };
    let is_newest = |index: usize| index + 1 == bars.len();
    match second {
        None => vec![source("bench", bars)],
        Some(SecondSource::Whole) => vec![source("bench", bars.clone()), source("second", bars)],
        Some(SecondSource::Alternating) => vec![
            source("bench", bars.filter(|index| index % 2 == 0)),
            source("second", bars.filter(|index| index % 2 == 1)),
        ],
        Some(SecondSource::Newest) => {
            let newest = bars.filter(is_newest);
            vec![source("bench", bars), source("second", newest)]
        }
    }
}

fn history(number: usize, sessions: &[NaiveDate], arguments: &Arguments) -> anyhow::Result<History> {
    let (first, last) = years(arguments);
    let mut random = Random(number as u64 + 1);
    let symbol = format!("S{number}");
    let date =
        |year: i32, month: u32, day: u32| NaiveDate::from_ymd_opt(year, month, day).unwrap_or_default();
    let splits: Vec<NaiveDate> = (first + 5..=last).step_by(10).map(|year| date(year, 6, 10)).collect();
    let mut dividends = Vec::new();
    for (year, month) in (first..=last).flat_map(|year| [2, 5, 8, 11].map(|month| (year, month))) {
        let line = dividends.len() as u64 + 1;
        let record = json!({
            "symbol": symbol, "amount": Decimal::new(i64::from(20 + year - first), 2), "currency": "USD", "type": "regular",
            "amount_basis": "raw", "ex_date": date(year, month, 10), "record_date": date(year, month, 11),
            "payment_date": date(year, month, 25), "declaration_date": date(year, month - 1, 10), "frequency": "quarterly",
        });
        dividends.push(observed(Some(format!("{symbol}-{year}-{month}")), line, record)?);
    }
    if let Some(days) = arguments.second_dividends {
        let later = |row: &Observation<Dividend>| {
            let mut row = Observation { source: "second".into(), ..row.clone() };
            row.record.ex_date = row.record.ex_date.and_then(|date| date.checked_add_days(Days::new(days)));
            row
        };
        let second: Vec<_> = dividends.iter().map(later).collect();
        dividends.extend(second);
    }
    let split = |(ex_date, line): (&NaiveDate, u64)| {
        observed(None, line, json!({ "symbol": symbol, "ex_date": ex_date, "from": "1", "to": "2" }))
    };
    let reported = |(year, line): (i32, u64)| {
        let record = json!({
            "symbol": symbol, "as_of": date(year, 12, 31), "eps_ttm": "3.21", "shares_outstanding": "250000000",
            "dividends_paid_ttm": "300000000", "operating_cash_flow_ttm": "900000000", "capital_expenditure_ttm": "200000000",
        });
        observed(None, line, record)
    };
    let security = json!({ "symbol": symbol, "name": symbol, "type": "stock", "currency": "USD", "status": "active",
                           "sector": "Industrials", "former_symbols": [], "indexes": ["sp500"] });
    let bars = bars(&mut random, sessions, &splits);
    Ok(History {
        symbol: Symbol::parse(&symbol)?,
        former_symbols: Vec::new(),
        security: Some(observed(None, 1, security)?),
        dividends,
        splits: splits.iter().zip(1..).map(split).collect::<anyhow::Result<_>>()?,
        fundamentals: (first..last).zip(1..).map(reported).collect::<anyhow::Result<_>>()?,
        etf: Vec::new(),
        holdings: Vec::new(),
        decisions: Vec::new(),
        evidence: Vec::new(),
        dividend_feeds: market::history::DividendFeeds::default(),
        prices: prices(bars, arguments.second_source),
    })
}

/// First and last calendar year of the bars.
fn years(arguments: &Arguments) -> (i32, i32) {
    (LAST_YEAR + 1 - arguments.years, LAST_YEAR)
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let (first, last) = years(&arguments);
    let as_of = NaiveDate::from_ymd_opt(last, 12, 31).unwrap_or_default();
    let start = NaiveDate::from_ymd_opt(first, 1, 1).unwrap_or_default();
    let sessions: Vec<NaiveDate> =
        start.iter_days().take_while(|day| *day <= as_of).filter(|day| is_session(*day)).collect();
    let distinct = arguments.distinct.clamp(1, arguments.symbols.max(1));
    let histories: Vec<History> =
        (0..distinct).map(|number| history(number, &sessions, &arguments)).collect::<anyhow::Result<_>>()?;
    let policy = SourcePolicy::default();
    let months = benchmark(&histories[0], as_of, &ExchangeRates::NONE, &policy, &Rules::DEFAULT);
    let market = DerivationContext {
        as_of,
        newest: as_of,
        benchmark: Some(&months),
        rates: &ExchangeRates::NONE,
        reporting_currency: "USD",
        policy: &policy,
        rules: &Rules::DEFAULT,
    };
    let threads = std::thread::available_parallelism()?.get();
    for round in 1..=3 {
        let started = Instant::now();
        let derived: usize = std::thread::scope(|scope| {
            let work = |thread: usize| {
                let (histories, market) = (&histories, &market);
                let mine = (thread..arguments.symbols).step_by(threads);
                scope.spawn(move || {
                    mine.map(|number| derive(&histories[number % histories.len()], market))
                        .filter(|derived| {
                            derived.metrics.dps_ttm.is_some() && derived.metrics.beta_5y.is_some()
                        })
                        .count()
                })
            };
            let workers: Vec<_> = (0..threads).map(work).collect();
            workers.into_iter().map(|worker| worker.join().unwrap_or_default()).sum()
        });
        let seconds = started.elapsed().as_secs_f64();
        anyhow::ensure!(derived == arguments.symbols, "{derived} of {} were derived", arguments.symbols);
        println!(
            "round {round}: {derived} securities of {} bars, {} dividends, {} splits in {seconds:.3} s on {threads} threads, {:.3} ms each and core",
            sessions.len(),
            histories[0].dividends.len(),
            histories[0].splits.len(),
            seconds * 1_000.0 * threads as f64 / derived as f64
        );
    }
    Ok(())
}
