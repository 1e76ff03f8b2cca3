//! Merging, judged by what is served.

use chrono::{DateTime, NaiveDate};

use crate::bars::{Bar, BarVersion, Bars, MISSING, day_number};
use crate::event::{Action, Dividend, Kind};
use crate::history::{History, Observation, PolicyRule, SourceBars, SourcePolicy};
use crate::measure::{Derived, Market, derive};
use crate::row::DividendStatus;
use crate::symbol::Symbol;

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

/// `source id revision +/- second ex-date amount [type [record date]]`; `-` stands for no id.
fn row(line: u64, text: &str) -> Observation<Dividend> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let kind = words.get(6).copied().unwrap_or("regular");
    let record = serde_json::json!({
        "symbol": "TEST", "amount": words[5], "currency": "USD", "type": kind, "amount_basis": "raw",
        "ex_date": words[4], "record_date": words.get(7),
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
        frame: String::new(),
        record: serde_json::from_value(record).unwrap(),
    }
}

fn history(rows: &[&str], closes: &[(&str, i64)]) -> History {
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
        prices: vec![SourceBars { source: "a".into(), bars, closes_only: Vec::new() }],
    }
}

fn derived(rows: &[&str], policy: &SourcePolicy) -> Derived {
    let market = Market { as_of: date("2024-12-31"), newest: date("2024-12-31"), benchmark: None, policy };
    derive(&history(rows, &[]), &market)
}

/// The live records as `ex-date amount`, in order.
fn live(derived: &Derived) -> Vec<String> {
    let live = derived
        .dividends
        .iter()
        .filter(|row| matches!(row.status, DividendStatus::Paid | DividendStatus::Declared));
    live.map(|row| format!("{} {}", row.ex_date, row.amount.unwrap_or_default())).collect()
}

fn check(rows: &[&str], expected: &[&str], flags: &[&str]) {
    let derived = derived(rows, &SourcePolicy::default());
    assert_eq!(live(&derived), expected, "{rows:?}");
    for flag in ["conflicting_duplicate", "cancelled:x", "ex_date_unexpected"] {
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
    // The same id and revision: the ex-date that the record date implies stays, whichever came last.
    check(
        &["a x 0 +1 2017-08-30 0.8 regular 2017-09-01", "a x 0 +2 2017-08-31 0.8 regular 2017-09-01"],
        &["2017-08-30 0.8"],
        &[],
    );
    check(&["a x 0 +1 2017-08-31 0.8 regular 2017-09-01"], &["2017-08-31 0.8"], &["ex_date_unexpected"]);
}

#[test]
fn cancellations() {
    check(&["a x 1 -1 2024-06-03 0", "a x 0 +2 2024-06-03 0.5"], &[], &["cancelled:x"]);
    check(&["a x 0 -1 2024-06-03 0", "a x 0 +2 2024-06-03 0.5"], &[], &["cancelled:x"]);
    check(&["a x 0 -1 2024-06-03 0", "a x 1 +2 2024-06-03 0.5"], &["2024-06-03 0.5"], &[]);
    // Without an id the later of one revision holds, and a retraction reaches rows with an id that are no newer.
    check(&["a - 0 -1 2024-06-03 0", "a - 0 +2 2024-06-03 0.5"], &["2024-06-03 0.5"], &[]);
    check(&["a - 0 -2 2024-06-03 0", "a x 0 +1 2024-06-03 0.5"], &[], &["cancelled:x"]);
    check(&["a - 0 -1 2024-06-03 0", "a x 0 +2 2024-06-03 0.5"], &["2024-06-03 0.5"], &[]);
    check(&["b - 0 -2 2024-06-03 0", "a x 0 +1 2024-06-03 0.5"], &["2024-06-03 0.5"], &[]);
}

#[test]
fn duplicates() {
    check(&["a x 0 +1 2024-06-03 0.5", "a y 0 +1 2024-06-03 0.5"], &["2024-06-03 0.5"], &[]);
    check(
        &["a x 0 +2 2024-06-03 0.5", "a y 0 +1 2024-06-03 0.6"],
        &["2024-06-03 0.5"],
        &["conflicting_duplicate"],
    );
    check(
        &["a - 0 +1 2024-06-03 0.5", "a - 0 +2 2024-06-03 0.6"],
        &["2024-06-03 0.6"],
        &["conflicting_duplicate"],
    );
    check(&["a - 0 +1 2024-06-03 0.5", "a - 1 +2 2024-06-03 0.6"], &["2024-06-03 0.6"], &[]);
    check(
        &["a x 0 +1 2024-06-03 0.5", "a y 0 +1 2024-06-03 3 special"],
        &["2024-06-03 0.5", "2024-06-03 3"],
        &[],
    );
}

#[test]
fn sources_never_interleave_and_manual_records_override() {
    let two = ["a x 0 +1 2024-03-04 0.5", "a y 0 +1 2024-06-03 0.5", "b x 0 +2 2024-06-04 0.5"];
    check(&two, &["2024-06-04 0.5"], &[]);
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
}

#[test]
fn rows_their_neighbours_contradict_are_held_and_come_back() {
    let rows = ["a - 0 +1 2024-06-03 25", "a - 0 +1 2024-06-05 25 liquidation"];
    let policy = SourcePolicy::default();
    let market =
        Market { as_of: date("2024-12-31"), newest: date("2024-12-31"), benchmark: None, policy: &policy };
    let held = derive(&history(&rows, &[("2024-05-31", 20)]), &market);
    assert_eq!(live(&held), ["2024-06-05 25"]);
    assert_eq!(held.quarantined[0].reason, "amount_exceeds_price");
    assert_eq!(live(&derive(&history(&rows, &[("2024-05-31", 26)]), &market)).len(), 2);
}

#[test]
fn a_bar_in_the_wrong_unit_is_held() {
    let closes = [("2024-06-03", 20), ("2024-06-04", 2010), ("2024-06-05", 20), ("2024-06-06", 2000)];
    let policy = SourcePolicy::default();
    let market =
        Market { as_of: date("2024-06-06"), newest: date("2024-06-06"), benchmark: None, policy: &policy };
    let found = derive(&history(&[], &closes), &market);
    assert_eq!(found.bars.close, [20, 20, 2000]);
    assert_eq!(
        (found.quarantined[0].reason.as_str(), found.quarantined[0].kind.as_str()),
        ("price_unit_error", "price")
    );
}
