use crate::day::day_number;
use chrono::NaiveDate;

use super::*;

fn check(interval: Interval, days: &[&str], expected: &[SessionRange]) {
    let days: Vec<i32> =
        days.iter().map(|day| day_number(day.parse::<NaiveDate>().expect("a date"))).collect();
    assert_eq!(interval.periods(&days, 0..days.len()), expected, "{interval}");
}

#[test]
fn periods_end_with_the_calendar() {
    let days = ["2023-12-29", "2024-01-02", "2024-01-05", "2024-01-08", "2024-03-28", "2024-04-01"];
    check(Interval::Daily, &days[..2], &[0..1, 1..2]);
    check(Interval::Weekly, &days, &[0..1, 1..3, 3..4, 4..5, 5..6]);
    check(Interval::Monthly, &days, &[0..1, 1..4, 4..5, 5..6]);
    check(Interval::Quarterly, &days, &[0..1, 1..5, 5..6]);
    check(Interval::Yearly, &days, &[0..1, 1..6]);
    check(Interval::Yearly, &[], &[]);
}

#[test]
fn months_and_quarters_of_two_years_are_two() {
    check(Interval::Monthly, &["2024-01-05", "2025-01-06"], &[0..1, 1..2]);
    check(Interval::Quarterly, &["2023-02-01", "2024-02-01"], &[0..1, 1..2]);
    check(
        Interval::Quarterly,
        &["2024-01-02", "2024-03-28", "2024-04-01", "2024-06-28", "2024-07-01"],
        &[0..2, 2..4, 4..5],
    );
}

#[test]
fn weeks_begin_on_monday() {
    check(Interval::Weekly, &["2024-01-07", "2024-01-08"], &[0..1, 1..2]);
    check(Interval::Weekly, &["2024-01-05", "2024-01-07"], std::slice::from_ref(&(0..2)));
    check(Interval::Weekly, &["2024-01-08", "2024-01-14", "2024-01-15"], &[0..2, 2..3]);
    let days = [1, 2, 3];
    assert_eq!(Interval::Daily.periods(&days, 1..3), [1..2, 2..3]);
}
