//! Builder of test histories: the payments, splits and closes of a company.

use chrono::{DateTime, Days, NaiveDate};
use market::bars::{Bar, BarVersion, Bars, MISSING};
use market::day::day_number;
use market::event::{Action, Dividend, DividendType, ShareBasis, Split};
use market::history::{History, Observation, SourceBars};
use market::symbol::Symbol;
use rust_decimal::Decimal;

const SCALE: u32 = 2;

#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) name: &'static str,
    /// Last day of the market data.
    pub(crate) until: NaiveDate,
    pub(crate) rows: Vec<(NaiveDate, Decimal, DividendType)>,
    splits: Vec<(NaiveDate, i64, i64)>,
    closes: Vec<(NaiveDate, Decimal)>,
}

pub(crate) fn date(text: &str) -> NaiveDate {
    text.parse().expect("a date")
}

impl Life {
    pub(crate) fn new(name: &'static str, until: &str) -> Self {
        Self { name, until: date(until), rows: Vec::new(), splits: Vec::new(), closes: Vec::new() }
    }

    /// Adds regular payments every `days` days, the first on `first`. Each pair of `amounts` is an amount and the
    /// number of successive payments with this amount.
    pub(crate) fn every(mut self, days: u64, first: &str, amounts: &[(&str, usize)]) -> Self {
        let mut ex_date = date(first);
        for (amount, times) in amounts {
            for _ in 0..*times {
                self.rows.push((ex_date, amount.parse().expect("an amount"), DividendType::Regular));
                ex_date = ex_date + Days::new(days);
            }
        }
        self
    }

    pub(crate) fn pay(self, ex_date: &str, amount: &str) -> Self {
        self.of_type(ex_date, amount, "regular")
    }

    pub(crate) fn of_type(mut self, ex_date: &str, amount: &str, kind: &str) -> Self {
        let kind = kind.parse().expect("a type");
        self.rows.push((date(ex_date), amount.parse().expect("an amount"), kind));
        self
    }

    pub(crate) fn split(mut self, ex_date: &str, from: i64, to: i64) -> Self {
        self.splits.push((date(ex_date), from, to));
        self
    }

    /// Closes must be added in chronological order.
    pub(crate) fn close(mut self, day: &str, close: &str) -> Self {
        self.closes.push((date(day), close.parse().expect("a close")));
        self
    }

    pub(crate) fn first(&self) -> NaiveDate {
        self.rows.iter().map(|row| row.0).min().expect("a payment")
    }

    /// Builds the history from one source, `a`. The records have no ids and no declaration dates.
    pub(crate) fn history(&self) -> History {
        let symbol = Symbol::parse("LIFE").expect("a symbol");
        let dividends = (1..).zip(&self.rows).map(|(line, (ex_date, amount, kind))| {
            let record = Dividend {
                symbol: symbol.clone(),
                amount: *amount,
                currency: "USD".into(),
                r#type: *kind,
                amount_basis: ShareBasis::Raw,
                ex_date: Some(*ex_date),
                record_date: None,
                payment_date: None,
                declaration_date: None,
                frequency: None,
                basis_as_of: None,
                sibling_amounts: Vec::new(),
            };
            observed(line, record)
        });
        let splits = (1..).zip(&self.splits).map(|(line, (ex_date, from, to))| {
            let record = Split {
                symbol: symbol.clone(),
                ex_date: *ex_date,
                from: (*from).into(),
                to: (*to).into(),
                declaration_date: None,
                payable_date: None,
                r#type: None,
            };
            observed(line, record)
        });
        let mut bars = Bars { scale: SCALE, versions: vec![BarVersion::UNKNOWN], ..Bars::default() };
        for (day, close) in &self.closes {
            let cents = i64::try_from(close * Decimal::ONE_HUNDRED).expect("whole cents");
            let (day, missing) = (day_number(*day), MISSING);
            let (open, high, low, vwap, trade_count) = (missing, missing, missing, missing, missing);
            bars.push(Bar { day, open, high, low, close: cents, volume: 1, vwap, trade_count }, 0);
        }
        History {
            symbol: symbol.clone(),
            former_symbols: Vec::new(),
            security: None,
            dividends: dividends.collect(),
            splits: splits.collect(),
            fundamentals: Vec::new(),
            etf: Vec::new(),
            holdings: Vec::new(),
            decisions: Vec::new(),
            evidence: Vec::new(),
            dividend_feeds: (1900..=2100).map(|year| ("a".to_owned(), year)).collect(),
            prices: vec![SourceBars { source: "a".into(), bars: bars.into(), closes_only: Vec::new() }],
        }
    }
}

pub(crate) fn observed<T>(line: u64, record: T) -> Observation<T> {
    Observation {
        source: "a".into(),
        id: None,
        security_ref: None,
        revision: 0,
        action: Action::Put,
        observed_at: DateTime::UNIX_EPOCH,
        line,
        frame: [0; 16],
        record,
    }
}
