//! Builder of test histories from tables in text form.

use chrono::NaiveDate;
use market::bars::{Bar, BarVersion, Bars, MISSING};
use market::day::{date_of, day_number};
use market::event::{Dividend, Fundamentals, Split};
use market::history::{History, SourceBars, SourcePolicy};
use market::metrics::{DerivationContext, DerivedRows, Rules, derive};
use market::symbol::Symbol;
use rust_decimal::Decimal;
use serde_json::{Map, Value, json};

use crate::lives::{date, observed};

const SCALE: u32 = 8;

/// Facts of one security as text tables. Rows are separated by white space, and cells by commas.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tables<'a> {
    /// Splits as `ex_date,from,to[,type]`.
    pub splits: &'a str,
    /// Dividends as `ex_date,amount[,type]`.
    pub dividends: &'a str,
    /// Bars as `date,close[,volume]`.
    pub prices: &'a str,
    /// Fundamentals as `date,shares,eps`.
    pub fundamentals: &'a str,
}

impl Tables<'_> {
    pub(crate) fn history(&self) -> History {
        History {
            symbol: Symbol::parse("LIFE").expect("a symbol"),
            former_symbols: Vec::new(),
            security: None,
            dividends: rows(
                self.dividends,
                &["ex_date", "amount", "type"],
                &json!({
                    "symbol": "LIFE", "currency": "USD", "type": "regular", "amount_basis": "raw",
                }),
            )
            .map(|(line, row)| observed(line, serde_json::from_value::<Dividend>(row).expect("a dividend")))
            .collect(),
            splits: rows(self.splits, &["ex_date", "from", "to", "type"], &json!({ "symbol": "LIFE" }))
                .map(|(line, row)| observed(line, serde_json::from_value::<Split>(row).expect("a split")))
                .collect(),
            fundamentals: rows(
                self.fundamentals,
                &["as_of", "shares_outstanding", "eps_ttm"],
                &json!({ "symbol": "LIFE" }),
            )
            .map(|(line, row)| observed(line, serde_json::from_value::<Fundamentals>(row).expect("figures")))
            .collect(),
            etf: Vec::new(),
            holdings: Vec::new(),
            decisions: Vec::new(),
            evidence: Vec::new(),
            dividend_feeds: (1900..=2100).map(|year| ("a".to_owned(), year)).collect(),
            prices: vec![SourceBars {
                source: "a".into(),
                bars: bars(self.prices).into(),
                closes_only: Vec::new(),
            }],
        }
    }

    pub(crate) fn on(&self, as_of: &str) -> DerivedRows {
        derived_on(as_of, &self.history())
    }
}

pub(crate) fn derived_on(as_of: &str, history: &History) -> DerivedRows {
    looking_back(as_of, as_of, history)
}

/// Derives the rows as of the day `as_of`. `newest` is the newest day of the market data; it may be later than `as_of`.
pub(crate) fn looking_back(as_of: &str, newest: &str, history: &History) -> DerivedRows {
    let (as_of, newest, policy) = (date(as_of), date(newest), SourcePolicy::default());
    let rules = &Rules::DEFAULT;
    derive(
        history,
        &DerivationContext {
            as_of,
            newest,
            benchmark: None,
            rates: &market::metrics::ExchangeRates::NONE,
            reporting_currency: "USD",
            policy: &policy,
            rules,
        },
    )
}

fn rows(text: &str, columns: &[&str], base: &Value) -> impl Iterator<Item = (u64, Value)> {
    let row = |line: &str| {
        let mut row: Map<String, Value> = base.as_object().cloned().unwrap_or_default();
        let cells = columns.iter().zip(line.split(',')).filter(|(_, cell)| !cell.is_empty());
        row.extend(cells.map(|(column, cell)| ((*column).to_owned(), json!(cell))));
        Value::Object(row)
    };
    (1..).zip(text.split_whitespace().map(row).collect::<Vec<_>>())
}

pub(crate) fn bars(text: &str) -> Bars {
    let mut bars = Bars { scale: SCALE, versions: vec![BarVersion::UNKNOWN], ..Bars::default() };
    for line in text.split_whitespace() {
        let cells: Vec<&str> = line.split(',').collect();
        let close: Decimal = cells[1].parse().expect("a close");
        let close = i64::try_from(close * Decimal::from(100_000_000)).expect("eight places");
        let volume = cells.get(2).map_or(1, |volume| volume.parse().expect("a volume"));
        let (open, high, low, vwap, trade_count) = (MISSING, MISSING, MISSING, MISSING, MISSING);
        let day = day_number(date(cells[0]));
        bars.push(Bar { day, open, high, low, close, volume, vwap, trade_count }, 0);
    }
    bars
}

pub(crate) fn closes(derived: &DerivedRows) -> Vec<String> {
    let close = |index: usize| derived.bars.decimal(derived.bars.close[index]).expect("a close").normalize();
    let line = |index| format!("{} {}", date_of(derived.bars.day[index]), close(index));
    (0..derived.bars.len()).map(line).collect()
}

/// Quarantined rows, each as `kind date reason`.
pub(crate) fn held(derived: &DerivedRows) -> Vec<String> {
    let day = |date: Option<NaiveDate>| date.map_or("-".to_owned(), |date| date.to_string());
    let line = |row: &market::row::Quarantined| format!("{} {} {}", row.kind, day(row.date), row.reason);
    derived.quarantined.iter().map(line).collect()
}
