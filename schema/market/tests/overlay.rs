//! Property tests of the overlay of sources: histories of random rows of three sources, without a source policy (R32).

mod written;

use chrono::{DateTime, NaiveDate, TimeDelta};
use market::event::{Action, Dividend, Split};
use market::history::{History, Observation};
use market::metrics::{CoveredRows, DerivedRows, covered_rows, explain};
use market::row::DividendStatus;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;
use written::{day, history, in_market, observed, on};

const AS_OF: &str = "2024-06-28";
const SOURCES: [&str; 3] = ["a", "b", "c"];

/// Row of a random source, before it gets an id.
#[derive(Debug, Clone)]
struct RandomRow {
    source: usize,
    /// Observation time, seconds.
    second: i64,
    /// Quarter before the as-of date, and days from its ex-date.
    quarter: i64,
    shift: i64,
    amount: &'static str,
    kind: &'static str,
    is_withdrawn: bool,
}

fn random_row() -> impl Strategy<Value = RandomRow> {
    let amount = prop::sample::select(vec!["0.5", "0.5", "0.5", "0.52", "5", "0.05", "500", "0"]);
    let kind = prop::sample::select(vec!["regular", "regular", "regular", "special", "spin_off", "stock"]);
    let place = (0..SOURCES.len(), 0i64..3, 0i64..16, -12i64..13);
    (place, amount, kind, prop::bool::weighted(0.15)).prop_map(
        |((source, second, quarter, shift), amount, kind, is_withdrawn)| RandomRow {
            source,
            second,
            quarter,
            shift,
            amount,
            kind,
            is_withdrawn,
        },
    )
}

fn put<T>(row: Observation<T>, source: &str, second: i64) -> Observation<T> {
    let observed_at = DateTime::from_timestamp(1_700_000_000 + second, 0).expect("an instant");
    Observation { source: source.into(), observed_at, ..row }
}

/// Dividends of one random row: the row, and its retraction if it is withdrawn.
fn dividends_of(line: usize, row: &RandomRow) -> Vec<Observation<Dividend>> {
    let ex_date = day(AS_OF) - TimeDelta::days(91 * row.quarter + row.shift);
    let record = json!({ "symbol": "TEST", "amount": row.amount, "currency": "USD", "type": row.kind,
                         "amount_basis": "raw", "ex_date": ex_date });
    let id = format!("id{line}");
    let first = put(observed(line, Some(&id), "put", record), SOURCES[row.source], row.second);
    let retracted = Observation { action: Action::Retract, revision: 1, ..first.clone() };
    if row.is_withdrawn { vec![first, retracted] } else { vec![first] }
}

fn splits_of(line: usize, row: &RandomRow) -> Vec<Observation<Split>> {
    let ex_date = day(AS_OF) - TimeDelta::days(91 * row.quarter + row.shift);
    let to = if row.amount == "0" { "1" } else { "2" };
    let record = json!({ "symbol": "TEST", "ex_date": ex_date, "from": "1", "to": to });
    let first =
        put(observed(line, Some(&format!("id{line}")), "put", record), SOURCES[row.source], row.second);
    let retracted = Observation { action: Action::Retract, revision: 1, ..first.clone() };
    if row.is_withdrawn { vec![first, retracted] } else { vec![first] }
}

fn random_history() -> impl Strategy<Value = History> {
    let rows = (prop::collection::vec(random_row(), 0..60), prop::collection::vec(random_row(), 0..8));
    rows.prop_map(|(dividends, splits)| History {
        dividends: (0..).zip(&dividends).flat_map(|(line, row)| dividends_of(line, row)).collect(),
        splits: (0..).zip(&splits).flat_map(|(line, row)| splits_of(line, row)).collect(),
        ..history("stock", &[], &[])
    })
}

fn derived(history: &History) -> DerivedRows {
    on(AS_OF, history)
}

fn covered(history: &History) -> CoveredRows {
    in_market(AS_OF, |market| covered_rows(history, market))
}

/// Derived rows without the quarantined rows of source `d`.
fn served(mut rows: DerivedRows) -> DerivedRows {
    rows.quarantined.retain(|row| row.source != "d");
    rows.metrics.quarantined.0.retain(|row| row.source != "d");
    rows.stock.listed.held_rows = rows.metrics.quarantined.0.len().try_into().expect("a few rows");
    rows
}

/// Paid and declared dividends, each as ex-date, amount and source.
fn live(derived: &DerivedRows) -> Vec<(NaiveDate, String, String)> {
    let is_live = |status: DividendStatus| matches!(status, DividendStatus::Paid | DividendStatus::Declared);
    let live = derived.dividends.iter().filter(|row| is_live(row.status));
    live.map(|row| (row.ex_date, row.amount.to_string(), row.source.clone())).collect()
}

/// Moves one row of a list to another place.
fn moved<T: Clone>(rows: &[T], from: &Index, to: &Index) -> Vec<T> {
    let mut rows = rows.to_vec();
    if !rows.is_empty() {
        let row = rows.remove(from.index(rows.len()));
        rows.insert(to.index(rows.len() + 1), row);
    }
    rows
}

/// Regular payments of a source, `days` apart, with a shift for each of them. The first is due on 1984-01-05.
fn payer(source: &str, second: i64, days: i64, shifts: &[i64]) -> Vec<Observation<Dividend>> {
    let row = |(line, shift): (usize, &i64)| {
        let number = i64::try_from(line).expect("a few rows");
        let ex_date = day("1984-01-05") + TimeDelta::days(days * number + shift);
        let record = json!({ "symbol": "TEST", "amount": "0.5", "currency": "USD", "type": "regular",
                             "amount_basis": "raw", "ex_date": ex_date });
        put(observed(line, Some(&format!("{source}{line}")), "put", record), source, second)
    };
    shifts.iter().enumerate().map(row).collect()
}

fn of(dividends: Vec<Observation<Dividend>>) -> History {
    History { dividends, ..history("stock", &[], &[]) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn rows_may_arrive_in_any_order(
        first in random_history(),
        moves in prop::collection::vec((any::<Index>(), any::<Index>()), 1..40),
    ) {
        let mut other = first.clone();
        for (from, to) in &moves {
            other.dividends = moved(&other.dividends, from, to);
            other.splits = moved(&other.splits, from, to);
        }
        prop_assert_eq!(derived(&first), derived(&other));
        prop_assert_eq!(covered(&first), covered(&other));
        let explained = |history: &History| in_market(AS_OF, |market| explain(history, market));
        prop_assert_eq!(explained(&first), explained(&other));
    }

    #[test]
    fn a_source_without_a_valid_row_changes_nothing(
        mut all in random_history(),
        invalid in prop::collection::vec((random_row(), any::<bool>()), 1..12),
    ) {
        // The rows of source `d` are newer than all others, but withdrawn or impossible.
        let before = all.clone();
        for (line, (row, is_impossible)) in (1_000..).zip(&invalid) {
            let amount = if *is_impossible { "0" } else { "0.5" };
            let row = RandomRow { amount, is_withdrawn: !is_impossible, second: 9, ..row.clone() };
            let of_new = |mut rows: Vec<Observation<Dividend>>| {
                rows.iter_mut().for_each(|row| row.source = "d".into());
                rows
            };
            all.dividends.extend(of_new(dividends_of(line, &row)));
            let mut splits = splits_of(line, &row);
            splits.iter_mut().for_each(|row| row.source = "d".into());
            all.splits.extend(splits);
        }
        let (with, without) = (derived(&all), derived(&before));
        let has_split = without
            .splits
            .iter()
            .any(|row| row.status.as_str() != "cancelled" && row.id.contains("/split/"));
        prop_assume!(!live(&without).is_empty() && has_split);
        prop_assert_eq!(served(with), served(without));
        prop_assert_eq!(covered(&all), covered(&before));
    }

    #[test]
    fn a_row_covers_at_most_one_row_of_a_source(
        older in prop::collection::vec(-6i64..7, 1..30),
        newer in prop::collection::vec(-6i64..7, 1..30),
        days in prop::sample::select(vec![30i64, 91, 182]),
    ) {
        let rows = [payer("a", 1, days, &older), payer("b", 2, days, &newer)].concat();
        let history = of(rows);
        let paid = live(&derived(&history)).len();
        prop_assert!(older.len().max(newer.len()) <= paid && paid <= older.len() + newer.len());
        let covered = covered(&history);
        let most = older.len().min(newer.len());
        prop_assert!(covered.rows.len() <= most, "{} of {most}", covered.rows.len());
        prop_assert!(covered.rows.iter().all(|row| (row.source.as_str(), row.by.as_str()) == ("a", "b")));
    }

    #[test]
    fn a_second_whole_feed_counts_no_payment_twice(
        shifts in prop::collection::vec(-7i64..8, 8..40),
        days in prop::sample::select(vec![30i64, 91, 182, 365]),
        lost in prop::collection::vec(any::<Index>(), 0..4),
    ) {
        let none = vec![0; shifts.len()];
        let mut newer = payer("b", 2, days, &shifts);
        for index in &lost {
            newer.remove(index.index(newer.len()));
        }
        let missing = shifts.len() - newer.len();
        let both = derived(&of([payer("a", 1, days, &none), newer].concat()));
        prop_assert_eq!(live(&both).iter().filter(|row| row.2 == "a").count(), missing);
        prop_assert_eq!(live(&both).len(), shifts.len());
    }
}
