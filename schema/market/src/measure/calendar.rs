//! NYSE sessions and New York's date (R21).
//!
//! A session is a weekday that is no holiday and no ad-hoc closing. Holidays follow the exchange's rule 7.2: a holiday
//! on a Sunday is kept on Monday, one on a Saturday on Friday, except New Year's Day, which is then not kept.
//! Rules hold from 1954 on; the days of half sessions are sessions. Early closings do not matter to end-of-day data.
//! Source: the exchange's holiday notices and `exchange_calendars`.

use chrono::{DateTime, Datelike, Days, NaiveDate, Utc, Weekday};
use chrono_tz::America::New_York;

/// Full-day closings by special notice, sorted (mourning, storms, blackout, attack, moon landing).
const CLOSINGS: [(i32, u32, u32); 26] = [
    (1961, 5, 29),
    (1963, 11, 25),
    (1968, 2, 12),
    (1968, 4, 9),
    (1968, 7, 5),
    (1969, 2, 10),
    (1969, 3, 31),
    (1969, 7, 21),
    (1972, 11, 7),
    (1972, 12, 28),
    (1973, 1, 25),
    (1976, 11, 2),
    (1977, 7, 14),
    (1980, 11, 4),
    (1985, 9, 27),
    (1994, 4, 27),
    (2001, 9, 11),
    (2001, 9, 12),
    (2001, 9, 13),
    (2001, 9, 14),
    (2004, 6, 11),
    (2007, 1, 2),
    (2012, 10, 29),
    (2012, 10, 30),
    (2018, 12, 5),
    (2025, 1, 9),
];

/// Whether the exchange holds a session on `date`.
pub fn is_session(date: NaiveDate) -> bool {
    let weekend = matches!(date.weekday(), Weekday::Sat | Weekday::Sun);
    !weekend && !is_holiday(date) && !is_special_closing(date)
}

/// The newest session before `date`.
pub fn previous_session(date: NaiveDate) -> NaiveDate {
    session_on_or_before(yesterday(date))
}

/// The first session after `date`.
pub fn next_session(date: NaiveDate) -> NaiveDate {
    session_on_or_after(tomorrow(date))
}

/// `date` if it is a session, else the newest one before it.
pub fn session_on_or_before(mut date: NaiveDate) -> NaiveDate {
    while !is_session(date) && date > NaiveDate::MIN {
        date = yesterday(date);
    }
    date
}

/// `date` if it is a session, else the first one after it.
pub fn session_on_or_after(mut date: NaiveDate) -> NaiveDate {
    while !is_session(date) && date < NaiveDate::MAX {
        date = tomorrow(date);
    }
    date
}

/// The session `count` sessions after `date` (before it, when negative); 0 is `date` itself.
pub fn add_sessions(mut date: NaiveDate, count: i32) -> NaiveDate {
    for _ in 0..count.unsigned_abs() {
        date = if count > 0 { next_session(date) } else { previous_session(date) };
    }
    date
}

/// Number of sessions after `after` up to and including `through`; 0 when there is none.
pub fn sessions_between(after: NaiveDate, through: NaiveDate) -> i32 {
    let mut sessions = 0;
    let mut date = after;
    while date < through {
        date = tomorrow(date);
        sessions += i32::from(is_session(date));
    }
    sessions
}

/// Whether no session follows `date` in its calendar month.
pub fn ends_month(date: NaiveDate) -> bool {
    next_session(date).month() != date.month()
}

/// New York's date at an instant, daylight saving included.
pub fn new_york_date(instant: DateTime<Utc>) -> NaiveDate {
    instant.with_timezone(&New_York).date_naive()
}

fn yesterday(date: NaiveDate) -> NaiveDate {
    date.checked_sub_days(Days::new(1)).unwrap_or(NaiveDate::MIN)
}

fn tomorrow(date: NaiveDate) -> NaiveDate {
    date.checked_add_days(Days::new(1)).unwrap_or(NaiveDate::MAX)
}

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

/// Listed closings, and the Wednesdays of the 1968 paperwork crisis.
fn is_special_closing(date: NaiveDate) -> bool {
    let key = (date.year(), date.month(), date.day());
    let paperwork = key.0 == 1968 && date.weekday() == Weekday::Wed && key >= (1968, 6, 12);
    paperwork || CLOSINGS.binary_search(&key).is_ok()
}

/// Two days before Easter Sunday, by the Gregorian computus.
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

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    #[test]
    fn closings_of_named_days() {
        for closed in [
            "2017-09-04",
            "2024-01-01",
            "2024-01-15",
            "2024-02-19",
            "2024-03-29",
            "2024-05-27",
            "2024-06-19",
            "2024-07-04",
            "2024-09-02",
            "2024-11-28",
            "2024-12-25",
            "2025-01-09",
            "2025-04-18",
            "2021-12-24",
            "2022-06-20",
            "2023-01-02",
            "2001-09-13",
            "2012-10-30",
            "2004-06-11",
            "1998-01-19",
            "2022-12-26",
            "2020-07-03",
            "1980-11-04",
            "2000-04-21",
            "2008-03-21",
            "1990-04-13",
            // The Mondays since 1971, and the days before.
            "1970-02-23",
            "1971-02-15",
            "2022-02-21",
            "1970-05-29",
            "1971-05-31",
            "2020-05-25",
            "2018-01-15",
            "2019-01-21",
            "2020-09-07",
            "2008-09-01",
            // Thanksgiving from the 22nd to the 28th, election days until 1968.
            "2018-11-22",
            "2019-11-28",
            "1965-11-02",
            "1966-11-08",
            "1968-11-05",
            // The Wednesdays of 1968 from the 12th of June on.
            "1968-06-12",
            "1968-12-18",
            "2023-06-19",
        ] {
            assert!(!is_session(date(closed)), "{closed}");
        }
        for open in [
            "2021-12-31",
            "2021-06-18",
            "1997-01-20",
            "2010-12-31",
            "2024-12-24",
            "2024-11-29",
            "2024-10-14",
            "2020-06-19",
            "1970-02-16",
            "2024-02-12",
            "2022-02-28",
            "1970-05-25",
            "2021-05-24",
            "2018-01-22",
            "2024-01-08",
            "2020-09-14",
            "2018-11-15",
            "2018-11-29",
            "1966-11-01",
            "1965-11-09",
            "1969-11-04",
            "1968-06-05",
            "1969-01-08",
        ] {
            assert!(is_session(date(open)), "{open}");
        }
    }

    #[test]
    fn a_year_has_its_known_number_of_sessions() {
        for (year, sessions) in [
            (1999, 252),
            (2001, 248),
            (2012, 250),
            (2018, 251),
            (2022, 251),
            (2023, 250),
            (2024, 252),
            (2025, 250),
        ] {
            let day = |y| NaiveDate::from_ymd_opt(y, 12, 31).unwrap();
            assert_eq!(sessions_between(day(year - 1), day(year)), sessions, "{year}");
        }
    }

    #[test]
    fn counting_and_stepping() {
        assert_eq!(add_sessions(date("2024-07-03"), 1), date("2024-07-05"));
        assert_eq!(add_sessions(date("2025-01-10"), -1), date("2025-01-08"));
        assert_eq!(sessions_between(date("2025-01-08"), date("2025-01-10")), 1);
        assert_eq!(sessions_between(date("2025-01-10"), date("2025-01-08")), 0);
        assert!(ends_month(date("2024-03-28")));
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
