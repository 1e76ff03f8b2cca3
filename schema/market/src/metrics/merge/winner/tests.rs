//! Tests that check in the explanation which observations are unused, and why.

use chrono::DateTime;

use super::MergeRecord;
use crate::event::{Action, Dividend, FormerSymbol, Kind, Split};
use crate::history::{History, Observation, PolicyRule, SourcePolicy};
use crate::metrics::dividends::ex_date::Settlement;
use crate::metrics::{DerivationContext, Rules, explain};
use crate::symbol::Symbol;

fn symbol(text: &str) -> Symbol {
    Symbol::parse(text).unwrap()
}

fn observed<T: serde::de::DeserializeOwned>(
    line: u64,
    words: &[&str],
    record: serde_json::Value,
) -> Observation<T> {
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

/// Builds an observation of a dividend from the words `source id revision +second ex-date amount`. The words
/// `record-date payment-date declaration-date symbol` may follow. `second` is the observation time. The sign before
/// `second` is `+` for a put and `-` for a retraction. A word `-` is an absent value.
fn dividend(line: u64, text: &str) -> Observation<Dividend> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let given = |place: usize| words.get(place).copied().filter(|word| *word != "-");
    let record = serde_json::json!({
        "symbol": given(9).unwrap_or("TEST"), "amount": words[5], "currency": "USD", "type": "regular",
        "amount_basis": "raw", "ex_date": given(4), "record_date": given(6), "payment_date": given(7),
        "declaration_date": given(8),
    });
    observed(line, &words[..4], record)
}

/// Builds an observation of a split from the words `source id revision +second ex-date from to`. The words
/// `declaration-date payable-date` may follow. `second` is the observation time. The sign before `second` is `+` for a
/// put and `-` for a retraction. A word `-` is an absent value.
fn split(line: u64, text: &str) -> Observation<Split> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let given = |place: usize| words.get(place).copied().filter(|word| *word != "-");
    let record = serde_json::json!({
        "symbol": "TEST", "ex_date": words[4], "from": words[5], "to": words[6],
        "declaration_date": given(7), "payable_date": given(8),
    });
    observed(line, &words[..4], record)
}

fn history(dividends: &[&str], splits: &[&str]) -> History {
    History {
        symbol: symbol("TEST"),
        former_symbols: vec![FormerSymbol { symbol: symbol("OLD"), from: None, to: None }],
        security: None,
        dividends: (1..).zip(dividends).map(|(line, text)| dividend(line, text)).collect(),
        splits: (1..).zip(splits).map(|(line, text)| split(line, text)).collect(),
        fundamentals: Vec::new(),
        etf: Vec::new(),
        holdings: Vec::new(),
        decisions: Vec::new(),
        evidence: Vec::new(),
        dividend_feeds: crate::history::DividendFeeds::default(),
        prices: Vec::new(),
    }
}

fn unused(history: &History, rules: &[PolicyRule]) -> Vec<String> {
    let policy = SourcePolicy { rules: rules.to_vec() };
    let as_of = "2024-06-28".parse().unwrap();
    let explained = explain(
        history,
        &DerivationContext {
            as_of,
            newest: as_of,
            benchmark: None,
            rates: &crate::metrics::ExchangeRates::NONE,
            reporting_currency: "USD",
            policy: &policy,
            rules: &Rules::DEFAULT,
        },
    );
    let mut rows: Vec<String> =
        explained.unused.iter().map(|row| format!("{} {}", row.line, row.outcome)).collect();
    rows.sort();
    rows
}

#[track_caller]
fn check(dividends: &[&str], expected: &[&str]) {
    assert_eq!(unused(&history(dividends, &[]), &[]), expected, "{dividends:?}");
    let mut turned = history(dividends, &[]);
    turned.dividends.reverse();
    assert_eq!(unused(&turned, &[]), expected, "reversed {dividends:?}");
}

#[test]
fn of_one_id_and_revision_the_better_dated_row_counts() {
    let plain = "a x 0 +5 2024-03-07 0.5";
    check(&[plain], &[]);
    check(&["a x 0 +1 2024-03-07 0.5 - 2024-04-01", plain], &["2 superseded"]);
    check(&["a x 0 +1 2024-03-07 0.5 - - 2024-02-01", plain], &["2 superseded"]);
    check(
        &["a x 0 +1 2024-03-07 0.5 - 2024-04-01 2024-02-01", "a x 0 +5 2024-03-07 0.5 - 2024-04-01"],
        &["2 superseded"],
    );
    // An ex-date that follows from the record date outweighs any number of other dates.
    check(
        &["a x 0 +1 2024-03-07 0.5 2024-03-08", "a x 0 +5 2024-03-06 0.5 2024-03-08 2024-04-01 2024-02-01"],
        &["2 superseded"],
    );
    // A greater revision outweighs all dates. If two rows are equal, the later row wins.
    check(&["a x 0 +1 2024-03-07 0.5 2024-03-08", "a x 1 +5 2024-03-06 0.5"], &["1 superseded"]);
    check(&["a x 0 +1 2024-03-07 0.5", "a x 0 +2 2024-03-07 0.6"], &["1 superseded"]);
    check(&["a x 0 +1 2024-03-07 0.5", "a x 0 +1 2024-03-07 0.6"], &["1 superseded"]);
    // Among rows of a day without an id and with equal revisions, the newer row wins, even if it has fewer dates.
    check(&["a - 0 +1 2024-03-07 0.5 - 2024-04-01 2024-02-01", "a - 0 +2 2024-03-07 0.5"], &["1 superseded"]);
}

#[test]
fn retractions_reach_what_they_name() {
    // A retraction with an id needs no dates. A retraction without an id needs the ex-date.
    check(&["a x 0 +1 2024-03-07 0.5", "a x 0 -2 - 0"], &["1 cancelled", "2 cancelled"]);
    check(&["a x 0 -2 2024-03-07 0"], &["1 cancelled"]);
    check(&["a - 0 -2 - 0"], &["1 no_ex_date"]);
    check(&["a x 0 +1 - 0.5", "a y 0 +1 2024-03-07 0"], &["1 no_ex_date", "2 non_positive_amount"]);
    // A retraction withdraws neither newer rows nor rows of other days or other sources.
    let put = "a x 0 +5 2024-03-07 0.5";
    check(&[put, "a - 0 -5 2024-03-07 0"], &["1 cancelled", "2 cancelled"]);
    check(&[put, "a - 0 -4 2024-03-07 0"], &["2 cancelled"]);
    check(&[put, "a - 1 -4 2024-03-07 0"], &["1 cancelled", "2 cancelled"]);
    check(&[put, "a - 0 -6 2024-03-08 0"], &["2 cancelled"]);
    check(&["a - 0 +5 2024-03-07 0.5", "a - 0 -5 2024-03-07 0"], &["1 cancelled", "2 cancelled"]);
    check(&["a - 0 +5 2024-03-07 0.5", "a x 0 -6 2024-03-07 0"], &["2 cancelled"]);
}

#[test]
fn a_record_moves_with_its_last_symbol() {
    let here = "a x 0 +1 2024-03-07 0.5";
    check(&[here, "a x 1 +2 2024-03-07 0.5 - - - ELSE"], &["1 superseded", "2 moved"]);
    check(&["a x 0 +1 2024-03-07 0.5 - - - ELSE", "a x 1 +2 2024-03-07 0.5"], &["1 superseded"]);
    // A record does not move if its last symbol is a former symbol of the same security (OLD), or if it has had only
    // one symbol.
    check(&[here, "a x 1 +2 2024-03-07 0.5 - - - OLD"], &["1 superseded"]);
    check(&["a x 1 +2 2024-03-07 0.5 - - - ELSE"], &[]);
    check(&["a - 0 +1 2024-03-07 0.5", "a - 1 +2 2024-03-07 0.5 - - - ELSE"], &["1 superseded"]);
}

#[test]
fn what_is_not_declared_yet_does_not_count_yet() {
    check(&["a x 0 +1 2024-07-09 0.5 - - 2024-06-28"], &[]);
    check(&["a x 0 +1 2024-07-09 0.5 - - 2024-06-29"], &["1 not_yet_known"]);
}

#[test]
fn a_rank_counts_whole_within_a_range() {
    let rows = [
        "a x 0 +1 2024-03-07 0.5",
        "a y 0 +1 2024-06-06 0.5",
        "b x 0 +1 2024-03-08 0.7",
        "b y 0 +1 2024-06-07 0.7",
    ];
    let rule = |source: &str, from: Option<&str>, to: Option<&str>, rank| PolicyRule {
        kind: Kind::Dividend,
        source: source.into(),
        from: from.map(|day| day.parse().unwrap()),
        to: to.map(|day| day.parse().unwrap()),
        rank,
    };
    let check = |rules: &[PolicyRule], expected: &[&str]| {
        assert_eq!(unused(&history(&rows, &[]), rules), expected, "{rules:?}");
    };
    check(&[], &["3 covered", "4 covered"]);
    check(&[rule("b", None, None, 1)], &["1 other_source", "2 other_source"]);
    check(&[rule("b", Some("2024-06-07"), None, 1)], &["3 covered"]);
    check(&[rule("b", Some("2024-06-08"), None, 1)], &["3 covered", "4 covered"]);
    check(&[rule("b", None, Some("2024-03-08"), 1)], &["1 other_source", "4 covered"]);
    check(&[rule("b", None, Some("2024-03-07"), 1)], &["3 covered", "4 covered"]);
    check(
        &[rule("b", None, None, 2), rule("a", Some("2024-06-01"), None, 1)],
        &["1 other_source", "4 other_source"],
    );
    check(&[rule("b", None, None, 1), rule("a", None, None, 2)], &["1 other_source", "2 other_source"]);
    // Sources of equal rank are an overlay too. A source without a rank is not used beside them.
    check(&[rule("b", None, None, 1), rule("a", None, None, 1)], &["3 covered", "4 covered"]);
}

#[test]
fn splits_are_of_the_source_of_their_day() {
    let splits = [
        "a x 0 +1 2023-03-01 1 2",
        "a y 0 +1 2024-03-07 1 3",
        "b x 0 +1 2023-03-02 1 2",
        "b y 0 +1 2024-03-08 1 3",
    ];
    let check = |from: &str, expected: &[&str]| {
        let from = Some(from.parse().unwrap());
        let rule = PolicyRule { kind: Kind::Split, source: "b".into(), from, to: None, rank: 1 };
        assert_eq!(unused(&history(&[], &splits), &[rule]), expected, "{from:?}");
    };
    check("2023-03-02", &["2 other_source"]);
    check("2023-03-03", &["2 other_source", "3 covered"]);
    check("2024-03-07", &["2 other_source", "3 covered"]);
    check("2024-03-08", &["3 covered"]);
    check("2024-03-09", &["3 covered", "4 covered"]);
}

#[test]
fn a_row_with_more_dates_is_better_dated() {
    let better = |worths: &[u32]| assert!(worths.windows(2).all(|pair| pair[0] < pair[1]), "{worths:?}");
    let dividends = [
        "a x 0 +1 - 0.5",
        "a x 0 +1 2024-03-07 0.5",
        "a x 0 +1 2024-03-07 0.5 - 2024-04-01",
        "a x 0 +1 2024-03-07 0.5 2024-03-12 2024-04-01 2024-02-01",
        // This row has fewer dates, but its ex-date follows from its record date.
        "a x 0 +1 2024-03-07 0.5 2024-03-08",
    ];
    better(&dividends.map(|text| dividend(1, text).record.preference(Settlement::UnitedStates)));
    let splits = [
        "a x 0 +1 2024-03-07 1 2",
        "a x 0 +1 2024-03-07 1 2 2024-02-01",
        "a x 0 +1 2024-03-07 1 2 2024-02-01 2024-03-06",
    ];
    better(&splits.map(|text| split(1, text).record.preference(Settlement::UnitedStates)));
}

#[test]
fn manual_records_have_the_last_word() {
    let vendor = "a x 0 +1 2024-03-07 0.5";
    check(&[vendor, "manual x 0 +1 2024-03-08 0.6"], &["1 overridden"]);
    check(&[vendor, "manual - 0 +1 2024-03-07 0.6"], &["1 overridden"]);
    check(&[vendor, "manual - 0 +1 2024-03-08 0.6"], &[]);
    check(&[vendor, "manual y 0 +1 2024-03-08 0.6"], &[]);
    check(&["a - 0 +1 2024-03-07 0.5", "manual y 0 +1 2024-03-08 0.6"], &[]);
    check(&[vendor, "manual x 0 -1 2024-03-08 0"], &["1 cancelled", "2 cancelled"]);
    check(&[vendor, "manual y 0 -1 2024-03-08 0"], &["2 cancelled"]);
    check(&["manual y 0 +1 2024-03-07 0.5", "manual x 0 -1 2024-03-08 0"], &["2 cancelled"]);
}

#[test]
fn of_two_splits_of_a_day_the_better_dated_or_the_later_counts() {
    let check = |splits: &[&str], expected: &[&str]| {
        assert_eq!(unused(&history(&[], splits), &[]), expected, "{splits:?}");
        let mut turned = history(&[], splits);
        turned.splits.reverse();
        assert_eq!(unused(&turned, &[]), expected, "reversed {splits:?}");
    };
    let plain = "a x 0 +5 2024-03-07 1 2";
    check(&[plain], &[]);
    check(&[plain, "a y 0 +1 2024-03-07 2 4 2024-02-01"], &["1 duplicate"]);
    check(&[plain, "a y 0 +1 2024-03-07 2 4"], &["2 duplicate"]);
    check(&[plain, "a y 0 +1 2024-03-07 1 3 2024-02-01"], &["2 duplicate"]);
    check(&[plain, "a y 0 +1 2024-03-08 1 2"], &[]);
    check(&[plain, "a x 0 +1 2024-03-07 1 2 2024-02-01"], &["1 superseded"]);
    check(&["a x 0 +1 2024-03-07 1 2 - 2024-03-06", "a x 0 +5 2024-03-07 1 2"], &["2 superseded"]);
    check(&[plain, "a x 1 -6 2024-03-07 1 2"], &["1 cancelled", "2 cancelled"]);
    check(&["a x 0 +1 2024-03-07 2 2"], &["1 no_share_change"]);
    check(&["a x 0 +1 2024-03-07 0 2"], &["1 non_positive_ratio"]);
    check(&["a x 0 +1 2024-03-07 2 0"], &["1 non_positive_ratio"]);
    check(&["a x 0 -1 2024-03-07 2 2"], &["1 cancelled"]);
}

#[test]
fn duplicates_of_a_payment_are_named() {
    check(&["a x 0 +1 2024-03-07 0.5", "a y 0 +2 2024-03-07 0.5"], &["1 duplicate"]);
    check(&["a x 0 +1 2024-03-07 0.5 - 2024-04-01", "a y 0 +2 2024-03-07 0.5"], &["2 duplicate"]);
    check(&["a x 0 +1 2024-03-07 0.5", "a - 0 +2 2024-03-07 0.5"], &["2 duplicate"]);
    check(&["a x 0 +1 2024-03-07 0.5 - 2024-04-01", "a y 0 +2 2024-03-07 0.6"], &["1 duplicate"]);
    let policy = SourcePolicy::default();
    let as_of = "2024-06-28".parse().unwrap();
    let told = |rows: &[&str]| {
        let history = history(rows, &[]);
        let explained = explain(
            &history,
            &DerivationContext {
                as_of,
                newest: as_of,
                benchmark: None,
                rates: &crate::metrics::ExchangeRates::NONE,
                reporting_currency: "USD",
                policy: &policy,
                rules: &Rules::DEFAULT,
            },
        );
        explained.unused[0].reason.to_string()
    };
    let by = told(&["a x 0 +1 2024-03-07 0.5", "a x 3 +2 2024-03-07 0.6"]);
    assert!(by.ends_with(": id x, revision 3, line 2, observed 1970-01-01T00:00:02+00:00"), "{by}");
    let by = told(&["a x 0 +2 2024-03-07 0.5", "a - 0 +1 2024-03-07 0.5"]);
    assert!(by.ends_with(": id x, revision 0, line 1, observed 1970-01-01T00:00:02+00:00"), "{by}");
    assert_eq!(told(&["a x 0 -2 2024-03-07 0"]), "the record was withdrawn");
}
