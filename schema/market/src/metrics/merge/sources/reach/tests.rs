//! Tests of the reach of dividends and splits.

use super::*;
use crate::event::Dividend;
use crate::metrics::merge::tests::observed;
use crate::metrics::rules::Rules;

fn rows(source: &str, days: i64, count: i64) -> Vec<Observation<Dividend>> {
    let first: NaiveDate = "2020-01-06".parse().unwrap();
    let row = |n: i64| {
        let ex_date = first + chrono::TimeDelta::days(days * n);
        let row: Observation<Dividend> = observed(serde_json::json!({
            "symbol": "TEST", "amount": "0.5", "currency": "USD", "type": "regular", "amount_basis": "raw",
            "ex_date": ex_date,
        }));
        Observation { source: source.into(), ..row }
    };
    (0..count).map(row).collect()
}

#[test]
fn the_reach_is_a_quarter_of_the_period_and_at_most_20_days() {
    let check = |a: (i64, i64), b: (i64, i64), expected: i64| {
        let all = [rows("a", a.0, a.1), rows("b", b.0, b.1)].concat();
        let periods = PaymentPeriods::read(all.iter(), Settlement::UnitedStates, &Rules::DEFAULT.schedule);
        for sources in [["a", "b"], ["b", "a"]] {
            let day = "2020-06-30".parse().unwrap();
            assert_eq!(periods.reach_days(sources, day), expected, "{a:?} {b:?}");
        }
    };
    for (days, expected) in
        [(365, 20), (182, 20), (121, 20), (91, 20), (30, 7), (28, 7), (14, 3), (7, 1), (1, 0)]
    {
        check((days, 40), (0, 0), expected);
        // Two rows of a correction file have another distance.
        check((days, 40), (365, 2), expected);
        check((days, 40), (3, 2), expected);
    }
    check((0, 0), (0, 0), 20);
    check((0, 1), (0, 1), 20);
}

#[test]
fn five_sessions_of_a_split_include_a_week() {
    let check = |older: &str, newer: &str, expected| {
        let [older, newer] = [older, newer].map(|day| day.parse::<NaiveDate>().unwrap());
        let periods = PaymentPeriods::default();
        for (a, b) in [(older, newer), (newer, older)] {
            let found = periods.is_within_reach::<crate::event::Split>(("a", a), ("b", b));
            assert_eq!(found, expected, "{a} {b}");
        }
    };
    check("2024-06-10", "2024-06-10", true);
    check("2024-06-10", "2024-06-17", true);
    check("2024-06-10", "2024-06-18", false);
    // Christmas and New Year are not sessions.
    check("2024-12-23", "2024-12-31", true);
    check("2024-12-23", "2025-01-02", false);
}
