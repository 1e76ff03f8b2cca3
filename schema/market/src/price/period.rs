//! Grouping of sessions into days, weeks, months, quarters or years.

use std::ops::Range;

use crate::day::date_of;
use crate::text_enum;
use chrono::Datelike;

text_enum! {
    /// Length of the period that one price point covers.
    pub enum Interval { Daily = "daily", Weekly = "weekly", Monthly = "monthly", Quarterly = "quarterly", Yearly = "yearly" }
}

/// Sessions that one price point covers, as a range of session indexes. The index of a session is its position among
/// the raw bars.
pub type SessionRange = Range<usize>;

impl Interval {
    /// Number of the period that contains a day. Days of the same period have the same number. A week begins on Monday.
    fn number(self, day: i32) -> i32 {
        let date = date_of(day);
        let month = date.year() * 12 + date.month0().cast_signed();
        match self {
            Self::Daily => day,
            // Day number 1 is 0001-01-01, a Monday.
            Self::Weekly => (day - 1).div_euclid(7),
            Self::Monthly => month,
            Self::Quarterly => month.div_euclid(3),
            Self::Yearly => date.year(),
        }
    }

    /// Groups sessions into periods, oldest first. `days` contains the day number of every session, and `sessions` is
    /// the range of session indexes to group.
    pub fn periods(self, days: &[i32], sessions: Range<usize>) -> Vec<SessionRange> {
        if self == Self::Daily {
            return sessions.map(|session| session..session + 1).collect();
        }
        let mut periods: Vec<SessionRange> = Vec::new();
        let mut current = None;
        for session in sessions {
            let number = Some(self.number(days[session]));
            match periods.last_mut() {
                Some(period) if current == number => period.end = session + 1,
                _ => periods.push(session..session + 1),
            }
            current = number;
        }
        periods
    }
}

#[cfg(test)]
mod tests {
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
}
