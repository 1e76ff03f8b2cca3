//! Trading calendar: sessions of the NYSE, and dates in New York (R21).
//!
//! A session is a weekday that is neither a holiday nor a special closing. Holidays follow the exchange's rule 7.2. A
//! Sunday holiday is observed on Monday, a Saturday holiday on Friday. New Year's Day on a Saturday is not observed.
//! The rules are valid from 1960. A day with an early closing is a session. Source: the exchange's holiday notices and
//! `exchange_calendars`.

use std::sync::LazyLock;

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, Utc, Weekday};
use chrono_tz::America::New_York;

use super::arithmetic::length_to_i32;
use crate::day::{next_day, previous_day};

/// Days on which a special notice closed the exchange (mourning, storms, blackout, attack, moon landing).
static CLOSINGS: LazyLock<Vec<NaiveDate>> = LazyLock::new(|| {
    let days = include_str!("calendar/special_closings.txt").lines();
    days.map(|day| day.parse().expect("each line of the file is a date")).collect()
});

/// True if the exchange has a session on `date`.
pub fn is_session(date: NaiveDate) -> bool {
    usize::try_from(date.num_days_from_ce() - FIRST_KNOWN)
        .ok()
        .and_then(|day| SESSIONS.get(day).copied())
        .unwrap_or_else(|| is_session_by_rule(date))
}

/// Day number of 1950-01-01, the first day of the precomputed calendar. Day 1 is 0001-01-01.
const FIRST_KNOWN: i32 = 711_858;
/// Length of the precomputed calendar, days: a hundred years.
const KNOWN: usize = 36_525;

/// Calendar of sessions: true for each day with a session. It is precomputed, because every dividend needs several
/// look-ups.
static SESSIONS: LazyLock<Vec<bool>> = LazyLock::new(|| {
    let first = NaiveDate::from_num_days_from_ce_opt(FIRST_KNOWN);
    first.into_iter().flat_map(|first| first.iter_days().take(KNOWN)).map(is_session_by_rule).collect()
});

fn is_session_by_rule(date: NaiveDate) -> bool {
    let weekend = matches!(date.weekday(), Weekday::Sat | Weekday::Sun);
    !weekend && !is_holiday(date) && !is_listed(date) && !is_paperwork_day(date)
}

/// Newest session before `date`.
pub fn previous_session(date: NaiveDate) -> NaiveDate {
    session_on_or_before(previous_day(date))
}

/// First session after `date`.
pub fn next_session(date: NaiveDate) -> NaiveDate {
    session_on_or_after(next_day(date))
}

/// Newest session on or before `date`.
pub fn session_on_or_before(mut date: NaiveDate) -> NaiveDate {
    while !is_session(date) && date > NaiveDate::MIN {
        date = previous_day(date);
    }
    date
}

/// First session on or after `date`. A session always exists, because the last representable day is a session.
pub fn session_on_or_after(mut date: NaiveDate) -> NaiveDate {
    while !is_session(date) {
        date = next_day(date);
    }
    date
}

/// The `count`-th session after `date`, or before `date` if `count` is negative. A `count` of 0 gives `date` itself.
pub fn add_sessions(date: NaiveDate, count: i32) -> NaiveDate {
    let step = if count.is_negative() { previous_session } else { next_session };
    (0..count.unsigned_abs()).fold(date, |date, _| step(date))
}

/// Number of sessions after `after`, up to and including `through`.
pub fn sessions_between(after: NaiveDate, through: NaiveDate) -> i32 {
    let days = after.iter_days().skip(1).take_while(|date| *date <= through);
    length_to_i32(days.filter(|date| is_session(*date)).count())
}

/// True if `date` is the last session of its calendar month.
pub fn ends_month(date: NaiveDate) -> bool {
    next_session(date).month() != date.month()
}

/// Date in New York at a point in time, daylight saving included.
pub fn new_york_date(instant: DateTime<Utc>) -> NaiveDate {
    instant.with_timezone(&New_York).date_naive()
}

/// Goes back from `date` by a number of calendar months. If the earlier month has no such day, the last day of that
/// month is used.
pub fn months_before(date: NaiveDate, months: u32) -> NaiveDate {
    date.checked_sub_months(Months::new(months)).unwrap_or(NaiveDate::MIN)
}

// Source: the exchange's rule 7.2, its holiday notices, and `exchange_calendars`.
fn is_holiday(date: NaiveDate) -> bool {
    let (year, day, weekday) = (date.year(), date.day(), date.weekday());
    let observed = |holiday: u32| {
        day == holiday
            || (day + 1 == holiday && weekday == Weekday::Fri)
            || (day == holiday + 1 && weekday == Weekday::Mon)
    };
    let monday_in = |from: u32| weekday == Weekday::Mon && (from..from + 7).contains(&day);
    match date.month() {
        1 => day == 1 || (day == 2 && weekday == Weekday::Mon) || (year >= 1998 && monday_in(15)),
        2 if year >= 1971 => monday_in(15),
        2 => observed(22),
        3 | 4 => weekday == Weekday::Fri && is_good_friday(date),
        5 if year >= 1971 => monday_in(25),
        // In 1970, Memorial Day was a Saturday. The exchange nevertheless had a session on the Friday before.
        5 if year == 1970 => false,
        5 => observed(30),
        6 => year >= 2022 && observed(19),
        7 => observed(4),
        9 => monday_in(1),
        11 => {
            let thanksgiving = weekday == Weekday::Thu && (22..29).contains(&day);
            let election = year <= 1968 && weekday == Weekday::Tue && (2..9).contains(&day);
            thanksgiving || election
        }
        12 => observed(25),
        _ => false,
    }
}

fn is_listed(date: NaiveDate) -> bool {
    CLOSINGS.contains(&date)
}

/// True for the Wednesdays of the paperwork crisis: 12 June to 31 December 1968, in weeks without another closing.
fn is_paperwork_day(date: NaiveDate) -> bool {
    // Monday to Friday of the week that contains the date.
    let weekdays = || date.week(Weekday::Mon).first_day().iter_days().take(5);
    let in_crisis = date.year() == 1968 && (date.month(), date.day()) >= (6, 12);
    in_crisis && date.weekday() == Weekday::Wed && !weekdays().any(|day| is_holiday(day) || is_listed(day))
}

/// True for Good Friday: two days before Easter Sunday, by the Gregorian computus.
fn is_good_friday(date: NaiveDate) -> bool {
    let year = date.year();
    let (golden, century, rest) = (year % 19, year / 100, year % 100);
    let correction = (8 * century + 13) / 25;
    let epact = (19 * golden + century - century / 4 - correction + 15) % 30;
    let weekday = (32 + 2 * (century % 4) + 2 * (rest / 4) - epact - rest % 4) % 7;
    let late = (golden + 11 * epact + 22 * weekday) / 451;
    let days = epact + weekday - 7 * late + 114;
    let easter = u32::try_from(days / 31).ok().zip(u32::try_from(days % 31 + 1).ok());
    let easter = easter.and_then(|(month, day)| NaiveDate::from_ymd_opt(year, month, day));
    easter.and_then(|easter| easter.checked_sub_days(Days::new(2))) == Some(date)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Weekdays without a session by year, from the exchange's own list of its holidays and special closings.
    const CLOSED: &str = include_str!("calendar/closings.txt");

    /// Good Fridays of future years, from the churches' tables of Easter dates.
    const GOOD_FRIDAYS: &str = "2027-03-26 2028-04-14 2029-03-30 2030-04-19 2031-04-11 2032-03-26 2033-04-15 2034-04-07 \
        2035-03-23 2036-04-11 2037-04-03 2038-04-23 2039-04-08 2040-03-30 2041-04-19 2042-04-04 2043-03-27 2044-04-15 \
        2045-04-07 2046-03-23 2047-04-12 2048-04-03 2049-04-16 2050-04-08 2051-03-31 2052-04-19 2053-04-04 2054-03-27 \
        2055-04-16 2056-03-31 2057-04-20 2058-04-12 2059-03-28 2060-04-16 2076-04-17 2077-04-09 2078-04-01 2079-04-21 \
        2097-03-29 2098-04-18 2099-04-10 2100-03-26 2101-04-15 2102-04-07 2103-03-23 2104-04-11 2105-04-03 2106-04-16 \
        2107-04-08 2199-04-12 2200-04-04 2201-04-17 2202-04-09 2203-04-01 2204-04-20 2205-04-05 2298-04-01 2299-04-14 \
        2300-04-06 2301-03-29 2302-04-18";

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    fn year(text: &str) -> i32 {
        text[..4].parse().unwrap()
    }

    fn closed_weekdays(from: NaiveDate, to: NaiveDate) -> Vec<String> {
        let weekdays = from
            .iter_days()
            .take_while(|day| *day <= to)
            .filter(|day| day.weekday().number_from_monday() < 6);
        weekdays.filter(|day| !is_session(*day)).map(|day| day.format("%m-%d").to_string()).collect()
    }

    #[test]
    fn the_exchange_closed_on_these_weekdays() {
        for line in CLOSED.lines() {
            let (first, last) = (format!("{}-01-01", year(line)), format!("{}-12-31", year(line)));
            let expected: Vec<&str> = line[5..].split(' ').collect();
            assert_eq!(closed_weekdays(date(&first), date(&last)), expected, "{}", year(line));
        }
        assert!(!is_session(date("2024-06-29")) && !is_session(date("2024-06-30")));
    }

    #[test]
    fn the_one_closing_of_spring_moves_with_easter() {
        for day in GOOD_FRIDAYS.split_whitespace() {
            let (first, last) = (format!("{}-03-01", year(day)), format!("{}-04-30", year(day)));
            assert_eq!(closed_weekdays(date(&first), date(&last)), [&day[5..]], "{day}");
        }
    }

    #[test]
    fn known_days_are_sessions_by_the_rule() {
        let (first, last) = (date("1949-12-01"), date("2050-02-01"));
        for day in first.iter_days().take_while(|day| *day <= last) {
            assert_eq!(is_session(day), is_session_by_rule(day), "{day}");
        }
        assert_eq!(date("1950-01-01").num_days_from_ce(), FIRST_KNOWN);
        assert_eq!(SESSIONS.len(), KNOWN);
    }

    #[test]
    fn counting_and_stepping() {
        assert_eq!(add_sessions(date("2024-07-03"), 1), date("2024-07-05"));
        assert_eq!(add_sessions(date("2025-01-10"), -1), date("2025-01-08"));
        assert_eq!(add_sessions(date("2025-01-10"), 5), date("2025-01-17"));
        assert_eq!(add_sessions(date("2025-01-11"), 0), date("2025-01-11"));
        assert_eq!(sessions_between(date("2025-01-08"), date("2025-01-10")), 1);
        assert_eq!(sessions_between(date("2025-01-07"), date("2025-01-17")), 7);
        assert_eq!(sessions_between(date("2025-01-06"), date("2025-01-07")), 1);
        assert_eq!(sessions_between(date("2025-01-07"), date("2025-01-07")), 0);
        assert_eq!(sessions_between(date("2025-01-10"), date("2025-01-08")), 0);
        assert_eq!(
            (previous_session(date("2024-07-05")), next_session(date("2024-07-03"))),
            (date("2024-07-03"), date("2024-07-05"))
        );
        assert_eq!(
            (session_on_or_before(date("2024-07-04")), session_on_or_after(date("2024-07-04"))),
            (date("2024-07-03"), date("2024-07-05"))
        );
        assert_eq!(
            (session_on_or_before(date("2024-07-05")), session_on_or_after(date("2024-07-05"))),
            (date("2024-07-05"), date("2024-07-05"))
        );
    }

    #[test]
    fn months_end_with_their_last_session() {
        for (day, ends) in [
            ("2024-03-28", true),
            ("2024-03-27", false),
            ("2024-05-31", true),
            ("2024-06-27", false),
            ("2024-06-28", true),
        ] {
            assert_eq!(ends_month(date(day)), ends, "{day}");
        }
    }

    #[test]
    fn the_calendar_ends_instead_of_failing() {
        // The first representable day is a New Year's Day, the last is a session.
        assert_eq!(session_on_or_before(NaiveDate::MIN), NaiveDate::MIN);
        assert_eq!(previous_session(NaiveDate::MIN), NaiveDate::MIN);
        assert_eq!(next_session(NaiveDate::MAX), NaiveDate::MAX);
        assert!(is_session(NaiveDate::MAX));
    }

    #[test]
    fn today_is_new_yorks() {
        for (instant, day) in [
            ("2025-01-01T04:59:59Z", "2024-12-31"),
            ("2025-01-01T05:00:00Z", "2025-01-01"),
            ("2025-07-01T04:00:00Z", "2025-07-01"),
            ("2025-07-01T03:59:59Z", "2025-06-30"),
        ] {
            assert_eq!(new_york_date(instant.parse().unwrap()), date(day), "{instant}");
        }
    }
}
