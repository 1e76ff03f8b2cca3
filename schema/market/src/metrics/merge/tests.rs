//! Tests of the merge of dividends from several sources. The tests compare the derived dividend rows and flags.

mod held;

use chrono::{DateTime, NaiveDate};

use crate::bars::{Bar, BarVersion, Bars, MISSING};
use crate::day::day_number;
use crate::event::{Action, Dividend, Kind};
use crate::history::{History, Observation, PolicyRule, SourceBars, SourcePolicy};
use crate::metrics::{DerivationContext, DerivedRows, Rules, derive};
use crate::row::DividendStatus;
use crate::symbol::Symbol;

pub(crate) fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

pub(crate) fn observed<T: serde::de::DeserializeOwned>(record: serde_json::Value) -> Observation<T> {
    Observation {
        source: "a".into(),
        id: None,
        security_ref: None,
        revision: 0,
        action: Action::Put,
        observed_at: DateTime::UNIX_EPOCH,
        line: 1,
        frame: [0; 16],
        record: serde_json::from_value(record).unwrap(),
    }
}

/// Builds a dividend from `source id revision ±second ex-date amount`, then optionally `type`, `record-date` and
/// sibling amounts such as `&0.259`. A `-` before the second makes a retraction. The id `-` means no id.
pub(crate) fn row(line: u64, text: &str) -> Observation<Dividend> {
    let (same_day_payments, words): (Vec<&str>, Vec<&str>) =
        text.split_whitespace().partition(|word| word.starts_with('&'));
    let same_day_payments: Vec<&str> = same_day_payments.into_iter().map(|word| &word[1..]).collect();
    let kind = words.get(6).copied().unwrap_or("regular");
    let record = serde_json::json!({
        "symbol": "TEST", "amount": words[5], "currency": "USD", "type": kind, "amount_basis": "raw",
        "ex_date": words[4], "record_date": words.get(7), "beside": same_day_payments,
    });
    let (action, second) = words[3].split_at(1);
    Observation {
        source: words[0].into(),
        id: Some(words[1].to_owned()).filter(|id| id != "-"),
        security_ref: None,
        revision: words[2].parse().unwrap(),
        action: if action == "-" { Action::Retract } else { Action::Put },
        observed_at: DateTime::from_timestamp(second.parse().unwrap(), 0).unwrap(),
        line,
        frame: [0; 16],
        record: serde_json::from_value(record).unwrap(),
    }
}

pub(crate) fn history(rows: &[&str], closes: &[(&str, i64)]) -> History {
    let mut bars = Bars { versions: vec![BarVersion::UNKNOWN], ..Bars::default() };
    for (day, close) in closes {
        let bar = Bar {
            day: day_number(date(day)),
            open: MISSING,
            high: MISSING,
            low: MISSING,
            close: *close,
            volume: 1,
            vwap: MISSING,
            trade_count: MISSING,
        };
        bars.push(bar, 0);
    }
    History {
        symbol: Symbol::parse("TEST").unwrap(),
        former_symbols: Vec::new(),
        security: None,
        dividends: (1..).zip(rows).map(|(line, text)| row(line, text)).collect(),
        splits: Vec::new(),
        fundamentals: Vec::new(),
        etf: Vec::new(),
        holdings: Vec::new(),
        decisions: Vec::new(),
        evidence: Vec::new(),
        dividend_feeds: (1900..=2100).map(|year| ("a".to_owned(), year)).collect(),
        prices: vec![SourceBars { source: "a".into(), bars: bars.into(), closes_only: Vec::new() }],
    }
}

pub(crate) fn at(day: &str, history: &History, policy: &SourcePolicy) -> DerivedRows {
    let day = date(day);
    let context = DerivationContext {
        as_of: day,
        newest: day,
        benchmark: None,
        rates: &crate::metrics::ExchangeRates::NONE,
        reporting_currency: "USD",
        policy,
        rules: &Rules::DEFAULT,
    };
    derive(history, &context)
}

fn derived(rows: &[&str], policy: &SourcePolicy) -> DerivedRows {
    at("2024-12-31", &history(rows, &[]), policy)
}

/// Paid and declared dividends, each as `ex-date amount`.
pub(crate) fn live(derived: &DerivedRows) -> Vec<String> {
    let live = derived
        .dividends
        .iter()
        .filter(|row| matches!(row.status, DividendStatus::Paid | DividendStatus::Declared));
    live.map(|row| format!("{} {}", row.ex_date, row.amount)).collect()
}

fn check(rows: &[&str], expected: &[&str], flags: &[&str]) {
    let derived = derived(rows, &SourcePolicy::default());
    assert_eq!(live(&derived), expected, "{rows:?}");
    for flag in ["conflicting_duplicate", "duplicate_collapsed", "cancelled:x", "ex_date_unexpected"] {
        assert_eq!(
            derived.metrics.flags.0.iter().any(|set| set == flag),
            flags.contains(&flag),
            "{flag}: {rows:?}"
        );
    }
}

#[test]
fn revisions_and_corrections() {
    check(&["a x 1 +1 2024-06-03 0.52", "a x 0 +2 2024-06-04 0.50"], &["2024-06-03 0.52"], &[]);
    // Of two rows with the same id and revision, the row whose ex-date follows from its record date wins, in any order.
    check(
        &["a x 0 +1 2017-08-30 0.8 regular 2017-09-01", "a x 0 +2 2017-08-31 0.8 regular 2017-09-01"],
        &["2017-08-30 0.8"],
        &["duplicate_collapsed"],
    );
    check(&["a x 0 +1 2017-08-31 0.8 regular 2017-09-01"], &["2017-08-31 0.8"], &["ex_date_unexpected"]);
}

#[test]
fn cancellations() {
    check(&["a x 1 -1 2024-06-03 0", "a x 0 +2 2024-06-03 0.5"], &[], &["cancelled:x"]);
    check(&["a x 0 -1 2024-06-03 0", "a x 0 +2 2024-06-03 0.5"], &[], &["cancelled:x"]);
    check(&["a x 0 -1 2024-06-03 0", "a x 1 +2 2024-06-03 0.5"], &["2024-06-03 0.5"], &[]);
    // Among rows without an id and with equal revisions, the later row wins. A retraction without an id also withdraws
    // rows that have an id, unless they are newer.
    check(&["a - 0 -1 2024-06-03 0", "a - 0 +2 2024-06-03 0.5"], &["2024-06-03 0.5"], &[]);
    check(&["a - 0 -2 2024-06-03 0", "a x 0 +1 2024-06-03 0.5"], &[], &["cancelled:x"]);
    check(&["a - 0 -1 2024-06-03 0", "a x 0 +2 2024-06-03 0.5"], &["2024-06-03 0.5"], &[]);
    check(&["b - 0 -2 2024-06-03 0", "a x 0 +1 2024-06-03 0.5"], &["2024-06-03 0.5"], &[]);
}

#[test]
fn duplicates() {
    check(
        &["a x 0 +1 2024-06-03 0.5", "a y 0 +1 2024-06-03 0.5"],
        &["2024-06-03 0.5"],
        &["duplicate_collapsed"],
    );
    check(
        &["a x 0 +2 2024-06-03 0.5", "a y 0 +1 2024-06-03 0.6"],
        &["2024-06-03 0.5"],
        &["conflicting_duplicate", "duplicate_collapsed"],
    );
    check(
        &["a - 0 +1 2024-06-03 0.5", "a - 0 +2 2024-06-03 0.6"],
        &["2024-06-03 0.6"],
        &["conflicting_duplicate", "duplicate_collapsed"],
    );
    check(&["a - 0 +1 2024-06-03 0.5", "a - 1 +2 2024-06-03 0.6"], &["2024-06-03 0.6"], &[]);
    check(
        &["a x 0 +1 2024-06-03 0.5", "a y 0 +1 2024-06-03 3 special"],
        &["2024-06-03 0.5", "2024-06-03 3"],
        &[],
    );
}

#[test]
fn an_income_and_a_gain_of_one_day_are_two_payments() {
    let both = ["2004-12-27 0.259", "2004-12-27 0.526"];
    let (income, gain) = ("a - 0 +1 2004-12-27 0.259", "a - 0 +1 2004-12-27 0.526 &0.259");
    check(&[income, gain], &both, &[]);
    check(&[gain, income], &both, &[]);
    // The same rows with ids. In the second case, a newer revision of row `y` does not list the sibling payment. Both
    // payments remain.
    check(&["a x 0 +1 2004-12-27 0.259", "a y 0 +1 2004-12-27 0.526 &0.259"], &both, &[]);
    check(
        &["a x 0 +1 2004-12-27 0.259", "a y 0 +1 2004-12-27 0.526 &0.259", "a y 1 +2 2004-12-27 0.526"],
        &both,
        &[],
    );
    // Nothing changes if only one of the two rows is loaded again.
    check(&[income, gain, "a - 0 +2 2004-12-27 0.259"], &both, &[]);
    check(&[income, gain, "a - 0 +2 2004-12-27 0.526"], &both, &[]);
    // A corrected income alone replaces both payments. The gain remains if the gain is loaded again with the new income
    // as its sibling, or if the new income lists the gain as its sibling.
    let corrected = ["a - 0 +2 2004-12-27 0.26", "a - 0 +2 2004-12-27 0.526 &0.26"];
    check(
        &[income, gain, corrected[0], corrected[1]],
        &["2004-12-27 0.26", "2004-12-27 0.526"],
        &["conflicting_duplicate", "duplicate_collapsed"],
    );
    check(
        &[income, gain, "a - 0 +2 2004-12-27 0.26"],
        &["2004-12-27 0.26"],
        &["conflicting_duplicate", "duplicate_collapsed"],
    );
    check(&[income, gain, "a - 1 +2 2004-12-27 0.26 &0.526"], &["2004-12-27 0.26", "2004-12-27 0.526"], &[]);
    // A listed sibling amount applies only to payments of the same day, type and currency.
    check(
        &[gain, "a - 0 +1 2004-12-28 0.259", "a - 0 +2 2004-12-28 0.526"],
        &["2004-12-27 0.526", "2004-12-28 0.526"],
        &["conflicting_duplicate", "duplicate_collapsed"],
    );
    let three =
        ["a - 0 +1 2004-12-27 0.1", "a - 0 +1 2004-12-27 0.2 &0.1", "a - 0 +1 2004-12-27 0.4 &0.1 &0.2"];
    check(&three, &["2004-12-27 0.1", "2004-12-27 0.2", "2004-12-27 0.4"], &[]);
}

#[test]
fn a_retraction_takes_one_payment_or_the_day() {
    let (income, gain) = ("a - 0 +1 2004-12-27 0.259", "a - 0 +1 2004-12-27 0.526 &0.259");
    check(&[income, gain, "a - 0 -2 2004-12-27 0"], &[], &[]);
    check(&[income, gain, "a - 0 -2 2004-12-27 0.526"], &["2004-12-27 0.259"], &[]);
    check(&[income, gain, "a - 0 -2 2004-12-27 0.3"], &[], &[]);
    check(&[income, gain, "a - 0 -0 2004-12-27 0"], &["2004-12-27 0.259", "2004-12-27 0.526"], &[]);
    check(&[income, gain, "a - 0 -2 2004-12-27 0", "a - 0 +3 2004-12-27 0.259"], &["2004-12-27 0.259"], &[]);
    let (income, gain) = ("a x 0 +1 2004-12-27 0.259", "a y 0 +1 2004-12-27 0.526 &0.259");
    check(&[income, gain, "a - 0 -2 2004-12-27 0"], &[], &["cancelled:x"]);
    check(&[income, gain, "a - 0 -2 2004-12-27 0.259"], &["2004-12-27 0.526"], &["cancelled:x"]);
    check(&[income, gain, "a - 0 -2 2004-12-27 0.526"], &["2004-12-27 0.259"], &[]);
    // A manual record overrides all payments of the day except those that it lists as siblings.
    check(
        &[income, gain, "manual - 0 +3 2004-12-27 0.26 &0.526"],
        &["2004-12-27 0.526", "2004-12-27 0.26"],
        &[],
    );
    check(&[income, gain, "manual - 0 +3 2004-12-27 0.785"], &["2004-12-27 0.785"], &[]);
    check(&[income, gain, "manual - 0 -3 2004-12-27 0.526"], &["2004-12-27 0.259"], &[]);
    check(&[income, gain, "manual - 0 -3 2004-12-27 0"], &[], &["cancelled:x"]);
}

#[test]
fn the_order_of_a_days_rows_never_matters() {
    let rows = [
        "a - 0 +1 2004-12-27 0.259",
        "a - 0 +1 2004-12-27 0.526 &0.259",
        "a - 0 +2 2004-12-27 0.26",
        "a - 1 +1 2004-12-27 0.3 &0.526",
        "a - 0 -3 2004-12-27 0.26",
        "a x 0 +1 2004-12-27 0.3",
    ];
    let stream: Vec<Observation<Dividend>> = (1..).zip(rows).map(|(line, text)| row(line, text)).collect();
    let of = |dividends: Vec<Observation<Dividend>>| {
        at("2024-12-31", &History { dividends, ..history(&[], &[]) }, &SourcePolicy::default())
    };
    let expected = of(stream.clone());
    for turn in 0..stream.len() {
        for swap in 1..stream.len() {
            let mut other = stream.clone();
            other.rotate_left(turn);
            other.swap(0, swap);
            assert_eq!(of(other), expected, "{turn} {swap}");
        }
    }
}

#[test]
fn an_ex_date_is_unexpected_where_no_rule_gives_it() {
    // The share price is 40.
    let check = |amount: &str, record_date: &str, ex_date: &str, expected| {
        let row = format!("a x 0 +1 {ex_date} {amount} regular {record_date}");
        let mut history = history(&[&row], &[("1995-05-01", 40)]);
        history.dividends[0].record.payment_date = Some(date(record_date) + chrono::Days::new(10));
        let flags = at("2024-12-31", &history, &SourcePolicy::default()).metrics.flags.0;
        assert_eq!(flags.iter().any(|flag| flag == "ex_date_unexpected"), expected, "{row}");
    };
    check("1", "2024-12-10", "2024-12-10", false);
    check("1", "2024-12-10", "2024-12-23", true);
    // A payment of a quarter of the price has its ex-date after the payment date. The ordinary ex-date is accepted too.
    check("10", "2024-12-10", "2024-12-23", false);
    check("10", "2024-12-10", "2024-12-10", false);
    check("10", "2024-12-10", "2024-12-20", true);
    // For record dates before T+3 settlement (until 1995-06-08), no ex-date is unexpected.
    check("1", "1995-06-08", "1995-06-02", false);
    check("1", "1995-06-09", "1995-06-05", true);
    check("1", "1995-06-09", "1995-06-07", false);
}

#[test]
fn an_ex_date_far_ahead_is_a_mistyped_year() {
    let found = derived(&["a x 0 +1 2026-02-04 0.5", "a y 0 +1 2026-02-05 0.5"], &SourcePolicy::default());
    assert_eq!(live(&found), ["2026-02-04 0.5"]);
    assert_eq!(found.quarantined[0].reason, "far_future_ex_date");
    let found = derived(&["a y 0 +1 2049-02-05 0.5"], &SourcePolicy::default());
    assert_eq!(found.metrics.dividend_status, crate::row::DividendState::NonPayer);
    assert_eq!(found.metrics.next.0, None);
}

#[test]
fn ranks_choose_a_source_whole_and_manual_records_override() {
    let two = ["a x 0 +1 2024-03-04 0.5", "a y 0 +1 2024-06-03 0.5", "b x 0 +2 2024-06-04 0.5"];
    check(&two, &["2024-03-04 0.5", "2024-06-04 0.5"], &[]);
    let rule = PolicyRule {
        kind: Kind::Dividend,
        source: "a".into(),
        from: None,
        to: Some(date("2024-04-30")),
        rank: 1,
    };
    let policy = SourcePolicy { rules: vec![rule] };
    assert_eq!(live(&derived(&two, &policy)), ["2024-03-04 0.5", "2024-06-04 0.5"]);
    let vendor = "a x 0 +5 2024-06-03 0.5";
    check(&[vendor, "manual - 0 +1 2024-06-03 0.6"], &["2024-06-03 0.6"], &[]);
    check(&[vendor, "manual x 0 +1 2024-06-05 0.6"], &["2024-06-05 0.6"], &[]);
    check(&[vendor, "manual - 0 +1 2024-09-03 0.6"], &["2024-06-03 0.5", "2024-09-03 0.6"], &[]);
    check(&[vendor, "manual x 0 -1 2024-06-03 0"], &[], &["cancelled:x"]);
    // The vendor row has no ex-date, so the ex-date is computed from its record date. The manual record overrides the
    // vendor row, although the vendor row was observed later.
    let mut undated =
        history(&["a x 0 +5 2024-03-07 0.5 regular 2024-03-08", "manual - 0 +1 2024-03-07 0.6"], &[]);
    undated.dividends[0].record.ex_date = None;
    let found = at("2024-12-31", &undated, &SourcePolicy::default());
    assert_eq!(live(&found), ["2024-03-07 0.6"]);
    assert!(found.metrics.flags.0.contains(&"conflicting_duplicate".to_owned()));
}
