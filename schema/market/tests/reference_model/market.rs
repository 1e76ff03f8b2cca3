//! Random but plausible securities with daily bars, quarterly dividends, specials and splits.

use chrono::{DateTime, Datelike, Days, NaiveDate, Weekday};
use market::bars::{Bar, BarVersion, Bars, MISSING};
use market::day::day_number;
use market::event::{Action, Dividend, DividendType, ShareBasis, Split};
use market::history::{History, Observation, SourceBars};
use market::symbol::Symbol;
use proptest::prelude::*;
use rust_decimal::Decimal;

pub(crate) fn as_of() -> NaiveDate {
    NaiveDate::from_ymd_opt(2024, 6, 28).expect("a date")
}

#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) bars: Vec<DayBar>,
    pub(crate) dividends: Vec<Paid>,
    pub(crate) splits: Vec<(NaiveDate, i64, i64)>,
}

/// All prices are in cents.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DayBar {
    pub(crate) day: NaiveDate,
    pub(crate) high: i64,
    pub(crate) low: i64,
    pub(crate) close: i64,
}

/// `amount` is in ten-thousandths of a dollar.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paid {
    pub(crate) ex_date: NaiveDate,
    pub(crate) amount: i64,
    pub(crate) special: bool,
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    // Daily steps are smaller than a 3:2 split, so the prices show each split from 3:2 on. Smaller splits are not
    // compared with the prices.
    let bars = prop::collection::vec((800i64..1_250, 0i64..300, 0i64..300), 70..420);
    let dividends = prop::collection::vec((-4i64..5, 3_000i64..6_000), 4..34);
    let specials = prop::collection::vec((0u64..700, 1_000i64..50_000), 0..3);
    // Two splits together change an amount by a factor of less than ten, so no amount looks like a unit error.
    let ratios = prop_oneof![Just((1, 2)), Just((2, 3)), Just((100, 105)), Just((2, 1)), Just((7, 5))];
    let splits = prop::collection::vec((0u64..2_000, ratios), 0..3);
    (bars, dividends, specials, splits).prop_map(|(bars, dividends, specials, splits)| {
        let back = |days: u64| as_of() - Days::new(days);
        let count = dividends.len() as u64;
        let regular = dividends.iter().enumerate().map(|(index, (shift, amount))| {
            let day = back(40 + 91 * (count - 1 - index as u64));
            let ex_date = if *shift < 0 {
                day - Days::new(shift.unsigned_abs())
            } else {
                day + Days::new(shift.unsigned_abs())
            };
            Paid { ex_date, amount: *amount, special: false }
        });
        let special = specials.iter().map(|(days, amount)| Paid {
            ex_date: back(*days),
            amount: *amount,
            special: true,
        });
        let mut dividends: Vec<Paid> = regular.chain(special).collect();
        dividends.sort_by_key(|paid| (paid.ex_date, paid.special));
        dividends.dedup_by_key(|paid| (paid.ex_date, paid.special));
        let mut splits: Vec<(NaiveDate, i64, i64)> =
            splits.into_iter().map(|(days, (from, to))| (back(days), from, to)).collect();
        splits.sort();
        splits.dedup_by(|later, earlier| (later.0 - earlier.0).num_days() < 14);
        Case { bars: split_walk(&bars, &splits), dividends, splits }
    })
}

/// Bars of a random walk. Each step multiplies the close by `step / 1000`. Each split multiplies the closes from its
/// ex-date on by the ratio old shares / new shares.
fn split_walk(steps: &[(i64, i64, i64)], splits: &[(NaiveDate, i64, i64)]) -> Vec<DayBar> {
    let mut close = 20_000;
    let rows: Vec<(i64, i64, i64)> = steps
        .iter()
        .map(|(step, up, down)| {
            close = (close * step / 1_000).clamp(8_000, 60_000);
            (close, *up, *down)
        })
        .rev()
        .collect();
    let mut bars = weekdays(&rows);
    for bar in &mut bars {
        for (_, from, to) in splits.iter().filter(|split| split.0 <= bar.day) {
            bar.close = bar.close * from / to;
        }
        (bar.high, bar.low) = (bar.close + bar.high % 300, bar.close - bar.low % 300);
    }
    bars
}

/// One bar per weekday, up to the as-of date. Each item of `rows` is a close, its distance to the high, and its
/// distance to the low. The newest bar is first.
fn weekdays(rows: &[(i64, i64, i64)]) -> Vec<DayBar> {
    let days = (0..)
        .map(|back| as_of() - Days::new(back))
        .filter(|day| !matches!(day.weekday(), Weekday::Sat | Weekday::Sun));
    let mut bars: Vec<DayBar> = days
        .zip(rows)
        .map(|(day, (close, up, down))| DayBar { day, high: close + up, low: close - down, close: *close })
        .collect();
    bars.reverse();
    bars
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

pub(crate) fn symbol() -> Symbol {
    Symbol::parse("TEST").expect("a symbol")
}

impl Case {
    pub(crate) fn simple() -> Self {
        let bars = weekdays(&(0..100).map(|i| (5_000 + i * 7 % 130, 10, 10)).collect::<Vec<_>>());
        Self { bars, dividends: Vec::new(), splits: Vec::new() }
    }

    pub(crate) fn history(&self) -> History {
        self.facts(|_, amount| (amount, ShareBasis::Raw), |_, price| price, None)
    }

    /// The same history from a feed that adjusts all amounts and prices for later splits.
    pub(crate) fn history_adjusted(&self) -> History {
        let ratio = |day: NaiveDate| {
            let later = self.splits.iter().filter(|split| split.0 > day);
            later.fold((Decimal::ONE, Decimal::ONE), |(from, to), split| {
                (from * Decimal::from(split.1), to * Decimal::from(split.2))
            })
        };
        self.facts(
            |day, amount| (amount * ratio(day).0 / ratio(day).1, ShareBasis::SplitAdjusted),
            |day, price| price * ratio(day).0 / ratio(day).1,
            Some(0),
        )
    }

    fn facts(
        &self,
        amount: impl Fn(NaiveDate, Decimal) -> (Decimal, ShareBasis),
        price: impl Fn(NaiveDate, Decimal) -> Decimal,
        basis_day: Option<i32>,
    ) -> History {
        let dividends = self.dividends.iter().zip(0..).map(|(paid, line)| {
            let (amount, amount_basis) = amount(paid.ex_date, Decimal::new(paid.amount, 4));
            let record = Dividend {
                symbol: symbol(),
                amount,
                currency: "USD".into(),
                r#type: if paid.special { DividendType::Special } else { DividendType::Regular },
                amount_basis,
                ex_date: Some(paid.ex_date),
                record_date: None,
                payment_date: None,
                declaration_date: None,
                frequency: None,
                basis_as_of: None,
                sibling_amounts: Vec::new(),
            };
            observed(line, record)
        });
        let splits = self.splits.iter().zip(0..).map(|((ex_date, from, to), line)| {
            let (from, to) = ((*from).into(), (*to).into());
            let record = Split {
                symbol: symbol(),
                ex_date: *ex_date,
                from,
                to,
                declaration_date: None,
                payable_date: None,
                r#type: None,
            };
            observed(line, record)
        });
        let scale = 12;
        let mut bars = Bars {
            scale,
            versions: vec![BarVersion { basis_day, ..BarVersion::UNKNOWN }],
            ..Bars::default()
        };
        for bar in &self.bars {
            let scaled = |cents: i64| {
                let value = price(bar.day, Decimal::new(cents, 2)).round_dp(scale)
                    * Decimal::from(1_000_000_000_000i64);
                i64::try_from(value.round()).expect("a price")
            };
            let row = Bar {
                day: day_number(bar.day),
                open: MISSING,
                high: scaled(bar.high),
                low: scaled(bar.low),
                close: scaled(bar.close),
                volume: 1_000,
                vwap: MISSING,
                trade_count: MISSING,
            };
            bars.push(row, 0);
        }
        History {
            symbol: symbol(),
            former_symbols: Vec::new(),
            security: None,
            dividends: dividends.collect(),
            splits: splits.collect(),
            fundamentals: Vec::new(),
            etf: Vec::new(),
            holdings: Vec::new(),
            decisions: Vec::new(),
            evidence: Vec::new(),
            dividend_feeds: market::history::DividendFeeds::default(),
            prices: vec![SourceBars { source: "a".into(), bars: bars.into(), closes_only: Vec::new() }],
        }
    }
}
