//! Random faulty facts: several sources, colliding keys, revisions, retractions, extreme numbers and other currencies.

use chrono::{DateTime, Days, NaiveDate};
use market::bars::{Bar, BarVersion, Bars, MISSING, VersionDictionary};
use market::day::day_number;
use market::event::{Action, Dividend, DividendType, Frequency, Fundamentals, Kind, ShareBasis, Split};
use market::history::{History, Observation, PolicyRule, SourceBars, SourcePolicy};
use proptest::prelude::*;
use rust_decimal::Decimal;

use super::market::{as_of, observed, symbol};

fn day() -> impl Strategy<Value = NaiveDate> {
    prop_oneof![4 => 0u64..10, 1 => 0u64..60].prop_map(|slot| as_of() + Days::new(120) - Days::new(slot * 61))
}

fn number() -> impl Strategy<Value = Decimal> {
    prop_oneof![
        6 => (1i64..5).prop_map(|n| Decimal::new(n * 25, 2)),
        1 => Just(Decimal::ZERO),
        1 => Just(Decimal::new(-1, 2)),
        1 => Just(Decimal::new(1, 10)),
        1 => Just(Decimal::from(9_999_999_999i64)),
        1 => (1i64..1_000_000_000).prop_map(|n| Decimal::new(n, 7)),
    ]
}

fn source() -> impl Strategy<Value = String> {
    prop_oneof![3 => Just("a"), 3 => Just("b"), 1 => Just("manual")].prop_map(str::to_owned)
}

/// Origin of an observation: source, id, revision, true for a retraction, and observation time in seconds.
type Provenance = (String, Option<String>, i64, bool, i64);

/// Random provenance, without a line number. The rows are numbered later, because every row of a file must have a
/// different line number.
fn provenance() -> impl Strategy<Value = Provenance> {
    let id = prop::option::of((0..4u8).prop_map(|id| format!("id{id}")));
    (source(), id, 0i64..3, prop::bool::weighted(0.2), 0i64..3)
}

fn versioned<T>(line: u64, (source, id, revision, retract, second): Provenance, record: T) -> Observation<T> {
    let action = if retract { Action::Retract } else { Action::Put };
    let observed_at = DateTime::from_timestamp(1_700_000_000 + second, 0).expect("an instant");
    Observation {
        source: source.into(),
        id,
        revision,
        action,
        observed_at,
        frame: u128::from(line).to_be_bytes(),
        ..observed(line, record)
    }
}

fn dividend() -> impl Strategy<Value = Dividend> {
    let dates = (
        prop::option::weighted(0.9, day()),
        prop::option::of(day()),
        prop::option::of(day()),
        prop::option::weighted(0.3, day()),
    );
    let beside = prop::collection::vec(number(), 0..3);
    let words = (
        prop::sample::select(DividendType::ALL),
        prop::bool::weighted(0.2),
        prop::option::weighted(0.3, prop::sample::select(Frequency::ALL)),
        prop::sample::select(vec!["USD", "USD", "USD", "GBP"]),
    );
    (number(), dates, words, beside).prop_map(
        |(amount, (ex_date, record_date, payment_date, declaration_date), words, beside)| {
            let (kind, adjusted, frequency, currency) = words;
            Dividend {
                symbol: symbol(),
                amount,
                currency: currency.into(),
                r#type: kind,
                amount_basis: if adjusted { ShareBasis::SplitAdjusted } else { ShareBasis::Raw },
                ex_date,
                record_date,
                payment_date,
                declaration_date,
                frequency,
                basis_as_of: payment_date.filter(|_| adjusted),
                sibling_amounts: beside,
            }
        },
    )
}

fn split() -> impl Strategy<Value = Split> {
    (day(), number(), number(), prop::option::weighted(0.3, day())).prop_map(
        |(ex_date, from, to, declaration_date)| Split {
            symbol: symbol(),
            ex_date,
            from,
            to,
            declaration_date,
            payable_date: None,
            r#type: None,
        },
    )
}

fn fundamentals() -> impl Strategy<Value = Fundamentals> {
    (day(), prop::option::of(number()), prop::option::of(number()), prop::option::of(number())).prop_map(
        |(as_of, eps, shares, paid)| {
            let mut record: Fundamentals =
                serde_json::from_value(serde_json::json!({ "symbol": "TEST", "as_of": as_of }))
                    .expect("fundamentals");
            (record.eps_ttm, record.shares_outstanding, record.dividends_paid_ttm) = (eps, shares, paid);
            (record.operating_cash_flow_ttm, record.capital_expenditure_ttm) = (paid, eps);
            record
        },
    )
}

fn bars() -> impl Strategy<Value = Bars> {
    let price = prop_oneof![8 => 1_000i64..3_000, 1 => Just(1i64), 1 => Just(200_000i64), 1 => Just(i64::MAX), 1 => Just(0i64), 1 => Just(-5i64)];
    let basis = prop_oneof![3 => Just(None), 1 => Just(Some(0)), 1 => Just(Some(1u64))];
    let row = (0u64..500, price.clone(), prop::option::of(price), 0i64..2, prop::bool::weighted(0.1), basis);
    (0u32..9, prop::collection::vec(row, 0..90)).prop_map(|(scale, rows)| {
        let mut bars = Bars { scale, ..Bars::default() };
        let mut dictionary = VersionDictionary::default();
        for (line, (back, close, high, revision, retracted, basis)) in (0..).zip(rows) {
            let basis_day = basis.map(|kind| if kind == 0 { 0 } else { day_number(as_of()) });
            let version = BarVersion { revision, retracted, basis_day, line, ..BarVersion::UNKNOWN };
            let version = dictionary.index(&mut bars.versions, &version).expect("few versions");
            let day = day_number(as_of() + Days::new(5) - Days::new(back));
            let high = high.unwrap_or(MISSING);
            bars.push(
                Bar {
                    day,
                    open: MISSING,
                    high,
                    low: MISSING,
                    close,
                    volume: 9,
                    vwap: MISSING,
                    trade_count: MISSING,
                },
                version,
            );
        }
        bars.merge(Bars::default()).unwrap_or_default()
    })
}

pub(crate) fn noise() -> impl Strategy<Value = History> {
    let dividends = prop::collection::vec((provenance(), dividend()), 0..40);
    let splits = prop::collection::vec((provenance(), split()), 0..8);
    let fundamentals = prop::collection::vec((provenance(), fundamentals()), 0..6);
    let prices = prop::collection::vec(bars(), 0..3);
    (dividends, splits, fundamentals, prices).prop_map(|(dividends, splits, fundamentals, prices)| {
        fn lined<T>(rows: Vec<(Provenance, T)>) -> Vec<Observation<T>> {
            (0..).zip(rows).map(|(line, (provenance, record))| versioned(line, provenance, record)).collect()
        }
        let sources = ["a", "b", "manual"].into_iter().map(str::to_owned);
        History {
            symbol: symbol(),
            former_symbols: Vec::new(),
            security: None,
            dividends: lined(dividends),
            splits: lined(splits),
            fundamentals: lined(fundamentals),
            etf: Vec::new(),
            holdings: Vec::new(),
            decisions: Vec::new(),
            evidence: Vec::new(),
            dividend_feeds: market::history::DividendFeeds::default(),
            prices: sources
                .zip(prices)
                .map(|(source, bars)| SourceBars { source, bars: bars.into(), closes_only: Vec::new() })
                .collect(),
        }
    })
}

pub(crate) fn policy() -> impl Strategy<Value = SourcePolicy> {
    let kind = prop::sample::select(vec![Kind::Dividend, Kind::Split, Kind::Price, Kind::Fundamentals]);
    let rule = (kind, source(), prop::option::of(day()), prop::option::of(day()), 0i32..3);
    let rules = prop::collection::vec(
        rule.prop_map(|(kind, source, from, to, rank)| PolicyRule { kind, source, from, to, rank }),
        0..4,
    );
    rules.prop_map(|rules| SourcePolicy { rules })
}

pub(crate) fn shuffled(history: &History, seed: u64) -> History {
    let mut other = history.clone();
    shuffle(&mut other.dividends, seed);
    shuffle(&mut other.splits, seed.rotate_left(17));
    shuffle(&mut other.fundamentals, seed.rotate_left(31));
    shuffle(&mut other.prices, seed.rotate_left(47));
    other
}

fn shuffle<T>(rows: &mut [T], mut state: u64) {
    for index in (1..rows.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let other = usize::try_from(state >> 33).unwrap_or_default() % (index + 1);
        rows.swap(index, other);
    }
}
