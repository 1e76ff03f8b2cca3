//! Tests of ranks of the source policy, of manual records, and of the choice over time.

use super::*;

#[test]
fn a_rank_without_a_valid_row_is_skipped() {
    let (first, second) = ("a x 0 +1 2024-06-03 0.5", "b x 0 +2 2024-06-04 0.6");
    let b = [rule("b", None, 1)];
    check_with(&[first, second], &b, &["2024-06-04 0.6"], &["a 2024-06-03 other_source by b"]);
    // A rank takes a source whole: a row of another source stays out, near or not.
    check_with(
        &[first, "b x 0 +2 2024-02-05 0.6"],
        &b,
        &["2024-02-05 0.6"],
        &["a 2024-06-03 other_source by b"],
    );
    let withdrawn = "b x 1 -3 2024-06-04 0";
    check_with(
        &[first, second, withdrawn],
        &b,
        &["2024-06-03 0.5"],
        &["b 2024-06-04 cancelled", "b 2024-06-04 cancelled"],
    );
    // The next rank is used, or else the overlay of the sources without a rank.
    let ranks = [rule("b", None, 1), rule("c", None, 2)];
    check_with(
        &[first, second, withdrawn, "c x 0 +1 2024-06-05 0.7"],
        &ranks,
        &["2024-06-05 0.7"],
        &["a 2024-06-03 other_source by c", "b 2024-06-04 cancelled", "b 2024-06-04 cancelled"],
    );
    check_with(
        &[first, second, withdrawn, "d x 0 +4 2024-06-05 0.7"],
        &ranks,
        &["2024-06-05 0.7"],
        &["a 2024-06-03 covered by d", "b 2024-06-04 cancelled", "b 2024-06-04 cancelled"],
    );
    // A rule for a source without rows divides the calendar, but changes nothing.
    check_with(
        &["a x 0 +1 2024-06-03 0.5", second],
        &[rule("z", Some("2024-06-04"), 1)],
        &["2024-06-04 0.6"],
        &["a 2024-06-03 covered by b"],
    );
}

#[test]
fn a_rank_with_only_held_rows_is_skipped() {
    let whole = series("a", "2021-01-05", 91, 16, "0.05");
    let policy = SourcePolicy { rules: vec![rule("b", Some("2024-10-01"), 1)] };
    let last = whole.last().unwrap().split(' ').nth(4).unwrap();
    let held = format!("b x 0 +2 {last} 5");
    let both = dividends(&[whole.clone(), vec![held.clone()]].concat());
    let derived = at(AS_OF, &both, &policy);
    assert_eq!(live(&derived).last(), Some(&format!("{last} 0.05")));
    assert_eq!(unused(&both, &policy), [format!("b {last} amount_outlier")]);
    // With another row in the range, the rank is used whole. Its held row still proves a payment.
    let rows = vec![format!("b y 0 +2 {last} 0.05"), "b x 0 +2 2024-12-31 5".to_owned()];
    let both = dividends(&[whole.clone(), rows].concat());
    let derived = at(AS_OF, &both, &policy);
    assert_eq!(live(&derived).last(), Some(&format!("{last} 0.05")));
    assert_eq!(
        unused(&both, &policy),
        [format!("a {last} other_source by b"), "b 2024-12-31 amount_outlier".to_owned()]
    );
    assert!(is_flagged(&derived, "amount_held"));
}

#[test]
fn a_withdrawn_row_of_an_outranked_source_is_not_listed() {
    let rows = [
        "a x 0 +1 2024-06-03 0.5",
        "b x 0 +2 2024-02-05 0.5",
        "b y 0 +2 2024-08-05 0.6",
        "b y 1 -3 2024-08-05 0",
    ];
    let cancelled = |rules: Vec<PolicyRule>| {
        let derived = at(AS_OF, &history(&rows, &[]), &SourcePolicy { rules });
        derived.dividends.iter().filter(|row| row.status.as_str() == "cancelled").count()
    };
    assert_eq!(cancelled(vec![]), 1);
    assert_eq!(cancelled(vec![rule("a", Some("2024-06-01"), 1)]), 0);
}

#[test]
fn a_manual_record_replaces_the_record_on_top() {
    let two = ["a x 0 +1 2024-06-03 0.5", "b y 0 +2 2024-06-04 0.6"];
    let with = |manual: &str| [two[0], two[1], manual].map(str::to_owned);
    let check = |manual: &str, expected: &[&str], expected_unused: &[&str]| {
        let rows = with(manual);
        check(&rows.each_ref().map(String::as_str), expected, expected_unused);
    };
    check(
        "manual - 0 +1 2024-06-04 0.7",
        &["2024-06-04 0.7"],
        &["a 2024-06-03 covered by b", "b 2024-06-04 overridden by manual"],
    );
    // The record that the manual one replaced is covered now. The record that covers it is the same payment.
    check(
        "manual - 0 +1 2024-06-03 0.7",
        &["2024-06-03 0.7"],
        &["a 2024-06-03 covered by b", "b 2024-06-04 overridden by manual"],
    );
    // A record that an operator withdrew covers nothing.
    check(
        "manual - 0 -1 2024-06-04 0",
        &["2024-06-03 0.5"],
        &["b 2024-06-04 cancelled", "manual 2024-06-04 cancelled"],
    );
    check(
        "manual - 0 -1 2024-06-03 0",
        &["2024-06-04 0.6"],
        &["a 2024-06-03 cancelled", "manual 2024-06-03 cancelled"],
    );
}

#[test]
fn the_choice_is_the_same_on_every_day_of_the_market() {
    let declared = |text: &str, day: &str| {
        let mut row: Observation<Dividend> = row(1, text);
        row.record.declaration_date = Some(date(day));
        row
    };
    let mut both = history(&[], &[]);
    both.dividends = vec![
        declared("a x 0 +1 2024-06-03 0.5", "2024-05-01"),
        declared("b y 0 +2 2024-06-04 0.6", "2024-05-10"),
    ];
    // The newer source says that the payment was declared later. Before that day, nothing was declared.
    let known = |day: &str| live(&at(day, &both, &SourcePolicy::default()));
    assert_eq!(known("2024-05-09"), Vec::<String>::new());
    assert_eq!(known("2024-05-10"), ["2024-06-04 0.6"]);
}
