//! Property test of adjusted feeds (R10, R35): a feed adjusts raw amounts, closes and volumes by every event in its list.
//! At every as-of date, the derived rows have the raw values again.

use std::collections::BTreeMap;

use chrono::{DateTime, Days, NaiveDate};
use market::bars::{Bar, BarVersion, Bars, MISSING};
use market::day::{date_of, day_number};
use market::event::{Action, Dividend, DividendType, ShareBasis, Split};
use market::history::{History, Observation, SourceBars};
use market::metrics::DerivedRows;
use market::row::DividendStatus;
use proptest::prelude::*;
use rust_decimal::{Decimal, RoundingStrategy};

use crate::lives::{Life, date};
use crate::tables::looking_back;

const FIRST: &str = "2020-01-06";
const BARS: u64 = 200;
const DAYS_BETWEEN_BARS: u64 = 5;
const DAYS_BETWEEN_PAYMENTS: u64 = 91;
/// Decimal places of the given prices.
const PRICE_PLACES: u32 = 8;

/// Event in a feed's list.
#[derive(Debug, Clone, Copy)]
struct Listed {
    ex_date: NaiveDate,
    from: i64,
    to: i64,
    form: Form,
}

/// Form in which a feed lists an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Split without a type. An odd ratio is a spin-off.
    Untyped,
    /// Split with a type that changes only prices. The feed does not adjust volumes for it.
    PriceOnly(&'static str),
    /// Dividend of the type `stock`.
    StockDividend,
    /// Split that the feed withdrew. The feed does not adjust for it.
    Withdrawn,
}

impl Listed {
    fn changes_shares(&self) -> bool {
        let is_spin_off = self.form == Form::Untyped && self.to > 1000;
        !is_spin_off && !matches!(self.form, Form::PriceOnly(_) | Form::Withdrawn)
    }

    fn changes_volumes(&self) -> bool {
        matches!(self.form, Form::Untyped | Form::StockDividend)
    }

    fn moves_the_price(&self) -> bool {
        self.form != Form::Withdrawn
    }
}

/// Raw facts of a security, and the way in which a feed adjusts them.
#[derive(Debug, Clone)]
struct Feed {
    listed: Vec<Listed>,
    /// Closes before all events, in ten-thousandths.
    levels: Vec<i64>,
    /// Amounts before all events, in ten-thousandths.
    amounts: Vec<i64>,
    /// Decimal places to which the feed rounds adjusted amounts.
    places: u32,
    /// True if the rows record the day up to which they are adjusted.
    is_dated: bool,
    /// True if a newer source has the splits too, one day later.
    has_newer_source: bool,
}

fn feed() -> impl Strategy<Value = Feed> {
    let untyped =
        [(1, 2), (1, 10), (10, 1), (2, 3), (4, 5), (100, 105), (10_000, 10_306), (1000, 1196), (1000, 1046)];
    let typed = ["spin_off", "rights", "class_distribution"];
    let listed = prop_oneof![
        5 => prop::sample::select(untyped.to_vec()).prop_map(|(from, to)| (from, to, Form::Untyped)),
        2 => prop::sample::select(typed.to_vec()).prop_map(|kind| (1000, 1281, Form::PriceOnly(kind))),
        1 => Just((100, 104, Form::StockDividend)),
        1 => Just((1, 3, Form::Withdrawn)),
    ];
    let listed = prop::collection::vec((listed, 0u64..60), 1..6);
    let levels = prop::collection::vec(1_000_000i64..1_300_000, BARS as usize);
    let amounts = prop::collection::vec(8_000i64..10_000, 10);
    (listed, levels, amounts, 6u32..=8, any::<bool>(), any::<bool>()).prop_map(
        |(listed, levels, amounts, places, is_dated, has_newer_source)| {
            // The last of five events is after the newest bar.
            let day = |index: usize, shift: u64| date(FIRST) + Days::new(100 + 230 * index as u64 + shift);
            let listed = listed.into_iter().enumerate().map(|(index, ((from, to, form), shift))| Listed {
                ex_date: day(index, shift),
                from,
                to,
                form,
            });
            Feed { listed: listed.collect(), levels, amounts, places, is_dated, has_newer_source }
        },
    )
}

fn rounded(value: Decimal, places: u32) -> Decimal {
    value.round_dp_with_strategy(places, RoundingStrategy::MidpointAwayFromZero)
}

impl Feed {
    /// Product of old and new shares of the events with `after` < ex-date <= `through`.
    fn terms(&self, after: NaiveDate, through: NaiveDate, counts: fn(&Listed) -> bool) -> (Decimal, Decimal) {
        let passed = self.listed.iter().filter(|event| after < event.ex_date && event.ex_date <= through);
        passed.filter(|event| counts(event)).fold((Decimal::ONE, Decimal::ONE), |(from, to), event| {
            (from * Decimal::from(event.from), to * Decimal::from(event.to))
        })
    }

    fn days(&self) -> Vec<NaiveDate> {
        (0..BARS).map(|index| date(FIRST) + Days::new(DAYS_BETWEEN_BARS * index)).collect()
    }

    fn newest(&self) -> NaiveDate {
        date(FIRST) + Days::new(DAYS_BETWEEN_BARS * (BARS - 1))
    }

    /// Raw closes by day.
    fn closes(&self) -> BTreeMap<NaiveDate, Decimal> {
        let close = |(day, level): (NaiveDate, &i64)| {
            let (from, to) = self.terms(date(FIRST), day, Listed::moves_the_price);
            (day, rounded(Decimal::new(*level, 4) * from / to, 4))
        };
        self.days().into_iter().zip(&self.levels).map(close).collect()
    }

    /// Declared amounts by ex-date.
    fn payments(&self) -> BTreeMap<NaiveDate, Decimal> {
        let payment = |(index, amount): (usize, &i64)| {
            let ex_date = date(FIRST) + Days::new(20 + DAYS_BETWEEN_PAYMENTS * index as u64);
            let (from, to) = self.terms(date(FIRST), ex_date, Listed::changes_shares);
            (ex_date, rounded(Decimal::new(*amount, 4) * from / to, 4))
        };
        self.amounts.iter().enumerate().map(payment).collect()
    }

    fn volume(&self, index: usize) -> i64 {
        1_000_000 + 7 * index as i64
    }

    fn adjusted(&self, raw: Decimal, day: NaiveDate, places: u32) -> Decimal {
        let (from, to) = self.terms(day, self.newest(), Listed::moves_the_price);
        rounded(raw * from / to, places)
    }

    /// Largest difference between a raw value and the value that follows from the rounded adjusted one.
    fn tolerance(&self, day: NaiveDate, places: u32) -> Decimal {
        let (from, to) = self.terms(day, self.newest(), Listed::moves_the_price);
        Decimal::new(5, places + 1) * to / from
    }

    fn dividend(&self, ex_date: NaiveDate, amount: Decimal, r#type: DividendType) -> Dividend {
        let is_stock = r#type == DividendType::Stock;
        Dividend {
            symbol: "LIFE".parse().expect("a symbol"),
            amount: if is_stock { amount } else { self.adjusted(amount, ex_date, self.places) },
            currency: "USD".into(),
            r#type,
            amount_basis: ShareBasis::SplitAdjusted,
            ex_date: Some(ex_date),
            record_date: None,
            payment_date: None,
            declaration_date: None,
            frequency: None,
            basis_as_of: self.is_dated.then(|| self.newest()),
            sibling_amounts: Vec::new(),
        }
    }

    fn bars(&self) -> Bars {
        let basis_day = Some(if self.is_dated { day_number(self.newest()) } else { 0 });
        let versions = vec![BarVersion { basis_day, ..BarVersion::UNKNOWN }];
        let mut bars = Bars { scale: PRICE_PLACES, versions, ..Bars::default() };
        for (index, (day, close)) in self.closes().into_iter().enumerate() {
            let (from, to) = self.terms(day, self.newest(), Listed::changes_volumes);
            let volume = rounded(Decimal::from(self.volume(index)) * to / from, 0);
            let close = self.adjusted(close, day, PRICE_PLACES) * Decimal::from(10i64.pow(PRICE_PLACES));
            let (open, high, low, vwap, trade_count) = (MISSING, MISSING, MISSING, MISSING, MISSING);
            let integer = |value: Decimal| i64::try_from(value).expect("64 bits");
            let (day, close, volume) = (day_number(day), integer(close), integer(volume));
            bars.push(Bar { day, open, high, low, close, volume, vwap, trade_count }, 0);
        }
        bars
    }

    fn history(&self) -> History {
        let mut history = Life::new("feed", FIRST).history();
        let mut line = 0;
        let mut observed = |action| {
            line += 1;
            Observation { action, ..crate::lives::observed(line, ()) }
        };
        let of = |provenance: &Observation<()>, record: Split| of_record(provenance, record);
        for event in &self.listed {
            let r#type = match event.form {
                Form::PriceOnly(kind) => Some(kind.to_owned()),
                _ => None,
            };
            let (from, to) = (Decimal::from(event.from), Decimal::from(event.to));
            let split = Split {
                symbol: history.symbol.clone(),
                ex_date: event.ex_date,
                from,
                to,
                declaration_date: None,
                payable_date: None,
                r#type,
            };
            let put = observed(Action::Put);
            if event.form == Form::StockDividend {
                let stock = self.dividend(event.ex_date, to / from - Decimal::ONE, DividendType::Stock);
                history.dividends.push(of_record(&put, stock));
                continue;
            }
            history.splits.push(of(&put, split.clone()));
            if event.form == Form::Withdrawn {
                history.splits.push(of(&observed(Action::Retract), split));
            } else if self.has_newer_source {
                let observed_at = DateTime::from_timestamp(1, 0).expect("a time");
                let newer = Observation { source: "b".into(), observed_at, ..observed(Action::Put) };
                history.splits.push(of(&newer, Split { ex_date: event.ex_date + Days::new(1), ..split }));
            }
        }
        for (ex_date, amount) in self.payments() {
            let row = self.dividend(ex_date, amount, DividendType::Regular);
            history.dividends.push(of_record(&observed(Action::Put), row));
        }
        history.prices =
            vec![SourceBars { source: "a".into(), bars: self.bars().into(), closes_only: Vec::new() }];
        history
    }
}

fn of_record<T>(provenance: &Observation<()>, record: T) -> Observation<T> {
    let Observation { source, id, security_ref, revision, action, observed_at, line, frame, record: () } =
        provenance.clone();
    Observation { source, id, security_ref, revision, action, observed_at, line, frame, record }
}

/// Paid amounts by ex-date, without stock dividends.
fn amounts(derived: &DerivedRows) -> BTreeMap<NaiveDate, Decimal> {
    let paid = derived.dividends.iter().filter(|row| row.status == DividendStatus::Paid);
    let cash = paid.filter(|row| row.r#type != DividendType::Stock);
    cash.map(|row| (row.ex_date, row.amount.0)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_row_has_one_raw_value_at_every_as_of_date(feed in feed(), back in prop::collection::vec(0u64..900, 3)) {
        let (history, newest) = (feed.history(), feed.newest());
        let (closes, payments) = (feed.closes(), feed.payments());
        let is_held = |derived: &DerivedRows, day| derived.quarantined.iter().any(|row| row.date == Some(day));
        let mut found = (BTreeMap::new(), BTreeMap::new());
        for as_of in [0].into_iter().chain(back).map(|days| newest - Days::new(days)) {
            let derived = looking_back(&as_of.to_string(), &newest.to_string(), &history);
            let amounts = amounts(&derived);
            for (ex_date, declared) in payments.iter().filter(|(ex_date, _)| **ex_date <= as_of) {
                let Some(amount) = amounts.get(ex_date) else {
                    prop_assert!(is_held(&derived, *ex_date), "{ex_date} is missing on {as_of}");
                    continue;
                };
                // The served amount is rounded to six places.
                let tolerance = feed.tolerance(*ex_date, feed.places) + Decimal::new(5, 7);
                prop_assert!((amount - declared).abs() <= tolerance, "{ex_date} on {as_of}: {amount}, declared {declared}");
                prop_assert_eq!(found.0.entry(*ex_date).or_insert(*amount), amount, "{} on {}", ex_date, as_of);
            }
            let bars = &derived.bars;
            for index in 0..bars.len() {
                let (day, close) = (date_of(bars.day[index]), Decimal::new(bars.close[index], bars.scale).normalize());
                let tolerance = feed.tolerance(day, PRICE_PLACES) + Decimal::new(5, 11);
                prop_assert!((close - closes[&day]).abs() <= tolerance, "{day} on {as_of}: {close}, was {}", closes[&day]);
                let row = (close, bars.volume[index]);
                prop_assert_eq!(*found.1.entry(day).or_insert(row), row, "{} on {}", day, as_of);
                let (from, to) = feed.terms(day, newest, Listed::changes_volumes);
                let position = (day - date(FIRST)).num_days() as usize / DAYS_BETWEEN_BARS as usize;
                let off = Decimal::from((bars.volume[index] - feed.volume(position)).abs());
                prop_assert!(off <= Decimal::ONE + from / to, "volume of {day} on {as_of} is off by {off}");
            }
            prop_assert!(bars.len() * 2 > closes.range(..=as_of).count(), "{as_of}");
        }
    }
}
