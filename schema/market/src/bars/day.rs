//! Sessions as numbers.

use std::ops::RangeInclusive;

use chrono::{Datelike, NaiveDate};

/// Days from 0001-01-01, the integer form of a session date.
pub fn day_number(date: NaiveDate) -> i32 {
    date.num_days_from_ce()
}

/// The date of a day number; days outside the calendar collapse to its ends.
pub fn date_of(day: i32) -> NaiveDate {
    NaiveDate::from_num_days_from_ce_opt(day).unwrap_or(if day < 0 { NaiveDate::MIN } else { NaiveDate::MAX })
}

/// The day numbers of a date's calendar year.
pub(super) fn days_of_year(date: NaiveDate) -> RangeInclusive<i32> {
    let first = day_number(date) - date.ordinal0().cast_signed();
    first..=first + if date.leap_year() { 365 } else { 364 }
}
