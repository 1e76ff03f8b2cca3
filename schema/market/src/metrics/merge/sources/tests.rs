//! Tests of the choice between sources (R32). Source `a` is loaded at second 1, `b` at second 2, and so on. A dividend
//! is a text as in the tests of the merge; a split is a text `source +second ex-date from to`.

mod ranks;
mod splits;

use chrono::{DateTime, Days};

use crate::event::{Action, Dividend, Kind, Split};
use crate::history::{History, Observation, PolicyRule, SourcePolicy};
use crate::metrics::merge::tests::{at, date, history, live, observed, row};
use crate::metrics::{CoveredRow, DerivationContext, DerivedRows, Rules, covered_rows, explain};

const AS_OF: &str = "2024-12-31";

fn split(line: u64, text: &str) -> Observation<Split> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (action, second) = words[1].split_at(1);
    let record =
        serde_json::json!({ "symbol": "TEST", "ex_date": words[2], "from": words[3], "to": words[4] });
    Observation {
        source: words[0].into(),
        line,
        action: if action == "-" { Action::Retract } else { Action::Put },
        observed_at: DateTime::from_timestamp(second.parse().unwrap(), 0).unwrap(),
        ..observed(record)
    }
}

/// Dividends of a source: `count` rows, `days` apart, the first on `first`.
fn series(source: &str, first: &str, days: u64, count: u64, amount: &str) -> Vec<String> {
    let second = 1 + source.bytes().map(u64::from).sum::<u64>() - u64::from(b'a');
    let day = |n: u64| date(first) + Days::new(days * n);
    (0..count).map(|n| format!("{source} - 0 +{second} {} {amount}", day(n))).collect()
}

fn dividends(rows: &[String]) -> History {
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    history(&rows, &[])
}

/// Rows that are not used, as `source date outcome`, sorted. The source that covers a row follows after `by`.
fn unused(history: &History, policy: &SourcePolicy) -> Vec<String> {
    let as_of = date(AS_OF);
    let context = DerivationContext {
        as_of,
        newest: as_of,
        benchmark: None,
        rates: &crate::metrics::ExchangeRates::NONE,
        reporting_currency: "USD",
        policy,
        rules: &Rules::DEFAULT,
    };
    let covered = covered_rows(history, &context).rows;
    let is_row = |row: &CoveredRow, seen: &crate::metrics::ExplainedObservation| {
        row.kind.as_str() == seen.kind
            && row.source == seen.source
            && row.date == seen.date
            && i64::try_from(row.line) == Ok(seen.line)
    };
    let mut unused: Vec<String> = explain(history, &context)
        .unused
        .iter()
        .map(|seen| {
            let by = covered.iter().find(|row| is_row(row, seen));
            let by = by.map_or(String::new(), |row| format!(" by {}", row.by));
            let date = seen.date.map_or("-".to_owned(), |date| date.to_string());
            format!("{} {date} {}{by}", seen.source, seen.outcome)
        })
        .collect();
    unused.sort();
    unused
}

/// Checks used payments (`date amount`) and unused rows, for the rows in several orders.
#[track_caller]
fn check(rows: &[&str], expected: &[&str], expected_unused: &[&str]) {
    check_with(rows, &[], expected, expected_unused);
}

#[track_caller]
fn check_with(rows: &[&str], rules: &[PolicyRule], expected: &[&str], expected_unused: &[&str]) {
    let policy = SourcePolicy { rules: rules.to_vec() };
    let mut all = history(rows, &[]);
    for turn in 0..rows.len().max(1) {
        let derived = at(AS_OF, &all, &policy);
        assert_eq!(
            (live(&derived), unused(&all, &policy)),
            (texts(expected), texts(expected_unused)),
            "{turn}"
        );
        if !rows.is_empty() {
            all.dividends.rotate_left(1);
        }
    }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn rule(source: &str, from: Option<&str>, rank: i32) -> PolicyRule {
    PolicyRule { kind: Kind::Dividend, source: source.into(), from: from.map(date), to: None, rank }
}

fn is_flagged(derived: &DerivedRows, flag: &str) -> bool {
    derived.metrics.flags.0.iter().any(|set| set.starts_with(flag))
}

#[test]
fn two_rows_of_a_new_source_correct_two_payments_of_thirty_years() {
    let whole = series("a", "1994-12-05", 91, 120, "0.5");
    let before = at(AS_OF, &dividends(&whole), &SourcePolicy::default());
    // The first correction moves an ex-date by three days, the second corrects an amount.
    let [moved, wrong] = [40, 80].map(|n: usize| whole[n].split_whitespace().nth(4).unwrap().to_owned());
    let later = date(&moved) + Days::new(3);
    let corrections = [format!("b - 0 +2 {later} 0.5"), format!("b - 0 +2 {wrong} 0.51")];
    let history = dividends(&[whole.clone(), corrections.to_vec()].concat());
    let after = at(AS_OF, &history, &SourcePolicy::default());
    let mut expected = live(&before);
    expected[40] = format!("{later} 0.5");
    expected[80] = format!("{wrong} 0.51");
    assert_eq!(live(&after), expected);
    assert_eq!(
        unused(&history, &SourcePolicy::default()),
        [format!("a {moved} covered by b"), format!("a {wrong} covered by b")]
    );
    assert_eq!(after.metrics.dps_ttm, before.metrics.dps_ttm);
    // The first source brings the next payment later. The corrections stay.
    let next = date(AS_OF) - Days::new(3);
    let mut more = history.clone();
    more.dividends.push(row(900, &format!("a - 0 +9 {next} 0.52")));
    expected.push(format!("{next} 0.52"));
    assert_eq!(live(&at(AS_OF, &more, &SourcePolicy::default())), expected);
    // A later correction by the first source is on top again.
    more.dividends.push(row(901, &format!("a - 0 +9 {wrong} 0.505")));
    expected[80] = format!("{wrong} 0.505");
    assert_eq!(live(&at(AS_OF, &more, &SourcePolicy::default())), expected);
}

#[test]
fn a_second_whole_feed_replaces_row_by_row() {
    for (days, shift) in [(30, 1), (30, 7), (91, 1), (91, 20), (182, 20), (365, 20), (7, 1)] {
        let first = series("a", "1984-01-05", days, 40, "0.5");
        let second_day = (date("1984-01-05") + Days::new(shift)).to_string();
        let second = series("b", &second_day, days, 40, "0.6");
        let derived =
            at(AS_OF, &dividends(&[first.clone(), second.clone()].concat()), &SourcePolicy::default());
        let alone = at(AS_OF, &dividends(&second), &SourcePolicy::default());
        assert_eq!(live(&derived), live(&alone), "every {days} days, {shift} days later");
        assert_eq!(derived.metrics.dps_ttm, alone.metrics.dps_ttm);
        // The later feed has only half of the payments. The other half stays.
        let half = [first.clone(), second[20..].to_vec()].concat();
        let derived = at(AS_OF, &dividends(&half), &SourcePolicy::default());
        assert_eq!(derived.dividends.iter().filter(|row| row.source == "a" && row.id.is_some()).count(), 20);
        assert_eq!(live(&derived).len(), live(&alone).len(), "{days} {shift}");
    }
    // One day more is another payment.
    let rows = [series("a", "2022-01-05", 30, 12, "0.5"), series("b", "2022-01-13", 30, 12, "0.6")];
    assert_eq!(live(&at(AS_OF, &dividends(&rows.concat()), &SourcePolicy::default())).len(), 24);
}

#[test]
fn a_supplement_of_a_monthly_payer_stays() {
    let monthly = series("a", "2022-01-05", 30, 24, "0.24");
    let supplement = ["b - 0 +2 2022-09-16 0.30".to_owned(), "b - 0 +2 2022-09-02 0.25".to_owned()];
    let history = dividends(&[monthly, supplement.to_vec()].concat());
    let derived = at(AS_OF, &history, &SourcePolicy::default());
    // The second row of `b` is the payment of 2022-09-02. The first is a fortnight after it, and no payment is near.
    assert_eq!(live(&derived).len(), 25);
    assert_eq!(unused(&history, &SourcePolicy::default()), ["a 2022-09-02 covered by b"]);
}

#[test]
fn classes_are_laid_over_each_other_separately() {
    let regular = "a x 0 +1 2024-06-03 0.5";
    // A special near a regular payment, on its day, and of its amount on another day.
    check(&[regular, "b y 0 +2 2024-06-04 3 special"], &["2024-06-03 0.5", "2024-06-04 3"], &[]);
    check(&[regular, "b y 0 +2 2024-06-03 3 special"], &["2024-06-03 0.5", "2024-06-03 3"], &[]);
    check(&[regular, "b y 0 +2 2024-06-04 0.5 special"], &["2024-06-03 0.5", "2024-06-04 0.5"], &[]);
    // Of one day and amount, it is one payment with another type.
    check(&[regular, "b y 0 +2 2024-06-03 0.5 special"], &["2024-06-03 0.5"], &["a 2024-06-03 covered by b"]);
    check(
        &["a x 0 +1 2024-06-03 5 special", "b y 0 +2 2024-06-05 5.1 capital_gain_long"],
        &["2024-06-05 5.1"],
        &["a 2024-06-03 covered by b"],
    );
    // The value of a spin-off and a stock dividend are classes of their own.
    check(
        &["a x 0 +1 2024-06-03 5 special", "b y 0 +2 2024-06-03 4 spin_off"],
        &["2024-06-03 5", "2024-06-03 4"],
        &[],
    );
    check(
        &["a x 0 +1 2024-06-03 0.05 stock", "b y 0 +2 2024-06-03 0.05"],
        &["2024-06-03 0.05", "2024-06-03 0.05"],
        &[],
    );
    // An untyped feed has both payments as regular ones. Each covers the payment of its amount.
    check(
        &[
            "a x 0 +1 2024-06-03 0.5",
            "a y 0 +1 2024-06-03 15 special",
            "b - 0 +2 2024-06-03 0.5",
            "b - 0 +2 2024-06-03 15 &0.5",
        ],
        &["2024-06-03 0.5", "2024-06-03 15"],
        &["a 2024-06-03 covered by b", "a 2024-06-03 covered by b"],
    );
}

#[test]
fn one_row_covers_the_nearest_one() {
    check(
        &[
            "a x 0 +1 2024-06-03 0.5 special",
            "a y 0 +1 2024-06-10 0.6 special",
            "b z 0 +2 2024-06-07 0.7 special",
        ],
        &["2024-06-03 0.5", "2024-06-07 0.7"],
        &["a 2024-06-10 covered by b"],
    );
    // Of two equally near rows, it covers the one of its amount.
    check(
        &[
            "a x 0 +1 2024-06-03 0.5 special",
            "a y 0 +1 2024-06-11 1.6 special",
            "b z 0 +2 2024-06-07 1.6 special",
        ],
        &["2024-06-03 0.5", "2024-06-07 1.6"],
        &["a 2024-06-11 covered by b"],
    );
    // Each of two rows covers one. A third row of the older source stays.
    check(
        &[
            "a x 0 +1 2024-06-03 1 special",
            "a y 0 +1 2024-06-10 2 special",
            "a z 0 +1 2024-06-17 4 special",
            "b x 0 +2 2024-06-04 8 special",
            "b y 0 +2 2024-06-16 16 special",
        ],
        &["2024-06-04 8", "2024-06-10 2", "2024-06-16 16"],
        &["a 2024-06-03 covered by b", "a 2024-06-17 covered by b"],
    );
    // A total of a day replaces its parts: without a mark, it is a version of both (R29).
    check(
        &["a - 0 +1 2024-06-03 0.259", "a - 0 +1 2024-06-03 0.526 &0.259", "b - 0 +2 2024-06-03 0.785"],
        &["2024-06-03 0.785"],
        &["a 2024-06-03 covered by b", "a 2024-06-03 covered by b"],
    );
    // An income is corrected, the gain of its day stays.
    check(
        &["a - 0 +1 2024-06-03 0.259", "a - 0 +1 2024-06-03 0.526 &0.259", "b - 0 +2 2024-06-03 0.26 &0.526"],
        &["2024-06-03 0.526", "2024-06-03 0.26"],
        &["a 2024-06-03 covered by b"],
    );
    // A row without an ex-date has the one that follows from its record date.
    let mut undated =
        history(&["a x 0 +1 2024-06-03 0.5 regular 2024-06-04", "b x 0 +2 2024-06-03 0.6"], &[]);
    undated.dividends[0].record.ex_date = None;
    assert_eq!(live(&at(AS_OF, &undated, &SourcePolicy::default())), ["2024-06-03 0.6"]);
}

#[test]
fn the_newest_of_several_sources_is_on_top() {
    check(
        &["a x 0 +1 2024-06-03 1", "b x 0 +2 2024-06-04 2", "c x 0 +3 2024-06-05 4"],
        &["2024-06-05 4"],
        &["a 2024-06-03 covered by b", "b 2024-06-04 covered by c"],
    );
    // The middle row covers the lowest one, although the uppermost is too far away from it.
    check(
        &["a x 0 +1 2024-06-03 1", "b x 0 +2 2024-06-20 2", "c x 0 +3 2024-07-05 4"],
        &["2024-07-05 4"],
        &["a 2024-06-03 covered by b", "b 2024-06-20 covered by c"],
    );
    // Rows that were observed at one time are in the order of the sources' names.
    check(
        &["b x 0 +1 2024-06-03 1", "a x 0 +1 2024-06-04 2"],
        &["2024-06-04 2"],
        &["b 2024-06-03 covered by a"],
    );
    // The time of the row counts, not that of another row of its source.
    check(
        &["a x 0 +1 2024-06-03 1", "b x 0 +2 2024-06-03 2", "a y 0 +3 2024-09-03 4"],
        &["2024-06-03 2", "2024-09-03 4"],
        &["a 2024-06-03 covered by b"],
    );
}

#[test]
fn a_withdrawn_row_covers_nothing() {
    let first = "a x 0 +1 2024-06-03 0.5";
    let withdrawn = ["b y 0 +2 2024-06-04 0.6", "b y 1 -3 2024-06-04 0"];
    let rows = [first, withdrawn[0], withdrawn[1]];
    check(&rows, &["2024-06-03 0.5"], &["b 2024-06-04 cancelled", "b 2024-06-04 cancelled"]);
    // A source with nothing but withdrawn rows changes no row and no flag.
    let far = [first, "b y 0 +2 2024-02-05 0.6", "b y 1 -3 2024-02-05 0"];
    for rows in [&rows, &far] {
        let policy = SourcePolicy::default();
        let alone = at(AS_OF, &history(&[first], &[]), &policy);
        assert_eq!(at(AS_OF, &history(rows, &[]), &policy), alone, "{rows:?}");
    }
    // The same rows without another source, or beside another row of their source, are listed as withdrawn.
    let listed = |rows: &[&str]| {
        let derived = at(AS_OF, &history(rows, &[]), &SourcePolicy::default());
        let cancelled = derived.dividends.iter().filter(|row| row.status.as_str() == "cancelled").count();
        (cancelled, is_flagged(&derived, "cancelled:y"))
    };
    assert_eq!(listed(&withdrawn), (1, true));
    assert_eq!(listed(&[far[0], far[1], far[2], "b z 0 +2 2024-09-03 0.5"]), (1, true));
    // Not if another source has the payment.
    assert_eq!(listed(&[first, withdrawn[0], withdrawn[1], "b z 0 +2 2024-09-03 0.5"]), (0, false));
    // A withdrawn row of the older source is under the newer one.
    check(
        &[first, "a x 1 -2 2024-06-03 0", "b y 0 +3 2024-06-04 0.6"],
        &["2024-06-04 0.6"],
        &["a 2024-06-03 cancelled", "a 2024-06-03 cancelled"],
    );
}

#[test]
fn a_held_row_covers_nothing() {
    let whole = series("a", "2021-01-05", 91, 16, "0.05");
    let check = |newer: &str, closes: &[(&str, i64)], reason: &str| {
        let rows: Vec<&str> = whole.iter().map(String::as_str).collect();
        let policy = SourcePolicy::default();
        let alone = at(AS_OF, &history(&rows, closes), &policy);
        let both = history(&[&rows[..], &[newer]].concat(), closes);
        let derived = at(AS_OF, &both, &policy);
        assert_eq!(live(&derived), live(&alone), "{newer}");
        assert_eq!(derived.metrics.flags, alone.metrics.flags, "{newer}");
        assert_eq!(
            (derived.metrics.dps_ttm, derived.metrics.frequency),
            (alone.metrics.dps_ttm, alone.metrics.frequency)
        );
        let held: Vec<&str> = derived.quarantined.iter().map(|row| row.reason.as_str()).collect();
        assert_eq!(held, [reason], "{newer}");
        assert_eq!(unused(&both, &policy), [format!("b {} {reason}", newer.split(' ').nth(4).unwrap())]);
    };
    let last = whole.last().unwrap().split(' ').nth(4).unwrap().to_owned();
    let beside = (date(&last) + Days::new(1)).to_string();
    for day in [&last, &beside] {
        check(&format!("b x 0 +2 {day} 5"), &[], "amount_outlier");
        check(&format!("b x 0 +2 {day} 50"), &[("2020-12-01", 40)], "amount_exceeds_price");
    }
    // An amount that nothing doubts covers the row of its payment.
    let derived = at(
        AS_OF,
        &dividends(&[whole, vec![format!("b x 0 +2 {beside} 0.06")]].concat()),
        &SourcePolicy::default(),
    );
    assert_eq!(live(&derived).last().map(String::as_str), Some(format!("{beside} 0.06").as_str()));
}

#[test]
fn an_operator_confirms_a_wrong_row_and_the_covered_one_returns() {
    let mut both = history(&["a x 0 +1 2024-06-03 0.5", "b y 0 +2 2024-06-04 0.6"], &[]);
    let decided = |verdict: &str| {
        observed(serde_json::json!({
            "symbol": "TEST", "verdict": verdict, "kind": "dividend", "source": "b", "row_id": "y",
            "date": "2024-06-04", "value": "0.6", "reason": "wrong", "note": "the filing says so",
        }))
    };
    both.decisions = vec![decided("confirm")];
    assert_eq!(live(&at(AS_OF, &both, &SourcePolicy::default())), ["2024-06-03 0.5"]);
    assert_eq!(unused(&both, &SourcePolicy::default()), ["b 2024-06-04 confirmed"]);
    both.decisions = vec![decided("release")];
    assert_eq!(live(&at(AS_OF, &both, &SourcePolicy::default())), ["2024-06-04 0.6"]);
}
