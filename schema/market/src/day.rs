//! Day numbers (session dates as days from 0001-01-01), and fast search in sorted day numbers.

use std::ops::RangeInclusive;

use chrono::{Datelike, NaiveDate};

/// Day number of a date: days from 0001-01-01, which is day 1.
pub fn day_number(date: NaiveDate) -> i32 {
    date.num_days_from_ce()
}

/// Date of a day number. A number outside the calendar becomes the nearest date of the calendar.
pub fn date_of(day: i32) -> NaiveDate {
    NaiveDate::from_num_days_from_ce_opt(day).unwrap_or(if day < 0 { NaiveDate::MIN } else { NaiveDate::MAX })
}

/// Day after a date. For the last date of the calendar, this date is returned.
pub(crate) fn next_day(date: NaiveDate) -> NaiveDate {
    date.succ_opt().unwrap_or(NaiveDate::MAX)
}

/// Day before a date. For the first date of the calendar, this date is returned.
pub(crate) fn previous_day(date: NaiveDate) -> NaiveDate {
    date.pred_opt().unwrap_or(NaiveDate::MIN)
}

/// Index of the first of the sorted `days` that is `day` or later, or else `days.len()`. Uses interpolation search,
/// because sessions are evenly spread.
pub(crate) fn position_on_or_after(days: &[i32], day: i32) -> usize {
    let (Some(first), Some(last)) = (days.first(), days.last()) else { return 0 };
    if day <= *first {
        return 0;
    }
    if day > *last {
        return days.len();
    }
    let (into, span) = (day.abs_diff(*first) as usize, last.abs_diff(*first) as usize);
    let mut low = into * (days.len() - 1) / span;
    let (mut high, mut step) = (low + 1, 4);
    // Invariant: `days[low]` is before `day`; `days[high]` is not before `day`.
    while days[low] >= day {
        (high, low) = (low, low.saturating_sub(step));
        step *= 2;
    }
    while days.get(high).is_some_and(|at| *at < day) {
        (low, high) = (high, (high + step).min(days.len() - 1));
        step *= 2;
    }
    low + days[low..high].partition_point(|at| *at < day)
}

/// Day numbers of the calendar year that contains a date.
pub(crate) fn days_of_year(date: NaiveDate) -> RangeInclusive<i32> {
    let first = day_number(date) - date.ordinal0().cast_signed();
    first..=first + if date.leap_year() { 365 } else { 364 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::position_on_or_after;

    proptest! {
        #[test]
        fn days_are_where_halving_finds_them(
            days in prop_oneof![
                prop::collection::btree_set(-50i32..50, 0..20),
                prop::collection::btree_set(700_000i32..720_000, 0..2_000),
                prop::collection::btree_set(any::<i32>(), 0..20),
            ],
            day in prop_oneof![-60i32..60, 699_990i32..720_010, any::<i32>()],
        ) {
            let days: Vec<i32> = days.into_iter().collect();
            for day in days.iter().copied().chain([day, i32::MIN, i32::MAX]) {
                prop_assert_eq!(position_on_or_after(&days, day), days.partition_point(|at| *at < day));
            }
        }
    }
}
