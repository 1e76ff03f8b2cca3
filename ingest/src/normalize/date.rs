//! Parsers of dates and times.
//!
//! Detection of the exchange's time zone, for columns with dates as UTC times of local midnight. For example, 1 July in
//! Berlin is written as `2021-06-30 22:00:00+00:00`. East of Greenwich, a column may mean either the UTC dates or the local
//! dates.

use std::fmt;
use std::sync::LazyLock;

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, Utc, Weekday};
use chrono_tz::Tz;

use super::row_error::{RowError, abbreviate, is_absent_value};

/// Parses a date in the form `YYYY-MM-DD` only.
pub(crate) fn parse_date(text: &[u8]) -> Option<NaiveDate> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else { return None };
    let number = |digits: &[&u8]| {
        digits.iter().try_fold(0u32, |sum, digit| {
            let digit = digit.wrapping_sub(b'0');
            (digit <= 9).then_some(sum * 10 + u32::from(digit))
        })
    };
    let year = i32::try_from(number(&[y1, y2, y3, y4])?).ok()?;
    NaiveDate::from_ymd_opt(year, number(&[m1, m2])?, number(&[d1, d2])?)
}

/// Parses a date, or a date with the time 00:00:00. The UTC offset is ignored: `2022-01-03 00:00:00+08:00` is 3
/// January, the local date of the exchange.
fn parse_date_or_midnight(text: &[u8]) -> Option<NaiveDate> {
    let Some((day, time)) = text.split_at_checked(10).filter(|(_, time)| !time.is_empty()) else {
        return parse_date(text);
    };
    let time = time.strip_prefix(b" ").or_else(|| time.strip_prefix(b"T"))?;
    let rest = time.strip_prefix(b"00:00:00")?;
    let is_zone = |byte: &u8| byte.is_ascii_digit() || b".:+-Z ".contains(byte);
    rest.iter().all(is_zone).then(|| parse_date(day))?
}

/// Parses a date, or a date with the time 00:00:00. If `zone` is set, also parses a UTC time that is midnight in this
/// zone. The result is then the local date.
pub(super) fn parse_day(text: &[u8], zone: Option<ExchangeZone>) -> Option<NaiveDate> {
    parse_date_or_midnight(text)
        .or_else(|| zone?.day_beginning_at(parse_utc_time(std::str::from_utf8(text).ok()?)?))
}

/// Parses the date of a price row. A week, a range or a time of day is an error.
pub(crate) fn parse_session_date(
    column: &str,
    text: &[u8],
    zone: Option<ExchangeZone>,
) -> Result<NaiveDate, RowError> {
    if let Some(date) = parse_day(text, zone) {
        return Ok(date);
    }
    if is_absent_value(text) {
        return Err(RowError::missing_value(column));
    }
    let shown = abbreviate(text);
    let (reason, fault) = match text.get(..10).and_then(parse_date) {
        Some(_) if matches!(text[10], b'T' | b' ') && text.contains(&b':') => {
            ("intraday_row", "has a time of day")
        }
        Some(_) => ("weekly_row", "is not one day"),
        None if shown.contains("-W") => ("weekly_row", "is a week"),
        None => return Err(invalid_date(column, text)),
    };
    Err(RowError::new(reason, format_args!("{column} {shown:?} {fault}: only daily rows are loaded")))
}

/// Error for an invalid date.
pub(super) fn invalid_date(column: &str, text: &[u8]) -> RowError {
    RowError::new("bad_date", format_args!("{column} {:?} is not a date: write YYYY-MM-DD", abbreviate(text)))
}

/// Parses an RFC 3339 time. It is truncated to microseconds, which is the precision of the log.
pub(crate) fn parse_time(text: &str) -> Option<DateTime<Utc>> {
    let time = DateTime::parse_from_rfc3339(text).ok()?.with_timezone(&Utc);
    DateTime::from_timestamp_micros(time.timestamp_micros())
}

/// Time zones of exchanges. The flag is true if the exchange has sessions on Sunday. The first zone that fits a column
/// is used.
static ZONES: LazyLock<Vec<(ExchangeZone, bool)>> = LazyLock::new(|| {
    let zone = |line: &str| {
        let name = line.strip_suffix(" Sunday").unwrap_or(line);
        Some((ExchangeZone::parse(name)?, name != line))
    };
    // Zones with equal UTC offsets are listed once.
    include_str!("exchange_zones.txt").lines().filter_map(zone).collect()
});

/// Time zone of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExchangeZone(Tz);

impl fmt::Display for ExchangeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

/// Meaning of a column of UTC times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UtcTimeInterpretation {
    /// All times are 00:00 in UTC. They mean the UTC dates.
    AsWritten,
    /// All times are 00:00 in this zone. They mean the local dates.
    LocalDays(ExchangeZone),
    /// All times are 00:00 in this zone. They may mean the local dates or the UTC dates, so the user must decide.
    Uncertain(ExchangeZone),
    /// The times are not 00:00 in any known zone. They are times of day instead of dates.
    Times,
}

impl ExchangeZone {
    /// Parses an IANA name such as `Europe/Berlin`.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        name.parse().ok().map(Self)
    }

    /// Local date of a UTC time.
    pub(crate) fn local_date(self, utc_time: NaiveDateTime) -> NaiveDate {
        self.local_time(utc_time).date()
    }

    /// Local date that begins at a UTC time; `None` if the local time is not midnight.
    pub(crate) fn day_beginning_at(self, utc_time: NaiveDateTime) -> Option<NaiveDate> {
        let local = self.local_time(utc_time);
        (local.time() == NaiveTime::MIN).then(|| local.date())
    }

    fn local_time(self, utc_time: NaiveDateTime) -> NaiveDateTime {
        utc_time.and_utc().with_timezone(&self.0).naive_local()
    }

    /// True if every time is midnight in this zone, on a day of the week with sessions.
    fn fits(self, has_sunday_sessions: bool, times: &[NaiveDateTime]) -> bool {
        let has_session = |day: NaiveDate| match day.weekday() {
            Weekday::Sat => false,
            Weekday::Sun => has_sunday_sessions,
            _ => true,
        };
        times.iter().all(|utc_time| self.day_beginning_at(*utc_time).is_some_and(has_session))
    }
}

/// Decides how the UTC times of a column become dates.
pub(crate) fn interpret_utc_times(times: &[NaiveDateTime]) -> UtcTimeInterpretation {
    if times.iter().all(|utc_time| utc_time.time() == NaiveTime::MIN) {
        return UtcTimeInterpretation::AsWritten;
    }
    let Some((zone, _)) = ZONES.iter().copied().find(|(zone, sunday)| zone.fits(*sunday, times)) else {
        return UtcTimeInterpretation::Times;
    };
    // West of Greenwich, local midnight is on the same date in UTC. The UTC date and the local date then agree.
    let same_date = times.iter().all(|utc_time| zone.day_beginning_at(*utc_time) == Some(utc_time.date()));
    // Times that follow daylight saving time, or UTC dates on a weekend, show that the local dates are meant.
    let summer_time = times.iter().any(|utc_time| utc_time.time() != times[0].time());
    let weekend = times.iter().any(|utc_time| matches!(utc_time.weekday(), Weekday::Sat | Weekday::Sun));
    if same_date || summer_time || weekend {
        UtcTimeInterpretation::LocalDays(zone)
    } else {
        UtcTimeInterpretation::Uncertain(zone)
    }
}

/// Parses a date and time with the UTC offset 0: `2024-11-21T00:00:00+0000`, `2024-11-21 05:00:00Z`.
pub(crate) fn parse_utc_time(text: &str) -> Option<NaiveDateTime> {
    let (date, rest) = text.trim().split_at_checked(10)?;
    let date = NaiveDate::parse_from_str(date, "%Y-%m-%d").ok()?;
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let offset = ["+00:00", "-00:00", "+0000", "+00", "Z", "z", " UTC", " GMT"];
    let time = offset.iter().find_map(|offset| rest.strip_suffix(offset))?.trim_end();
    let time = ["%H:%M:%S%.f", "%H:%M"].iter().find_map(|form| NaiveTime::parse_from_str(time, form).ok())?;
    Some(date.and_time(time))
}

/// Converts Unix seconds to a UTC time.
pub(crate) fn from_unix_seconds(seconds: i64) -> Option<NaiveDateTime> {
    DateTime::<Utc>::from_timestamp(seconds, 0).map(|time| time.naive_utc())
}

#[cfg(test)]
mod tests {
    use chrono::Days;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    #[test]
    fn every_line_of_the_list_is_a_zone() {
        assert_eq!(ZONES.len(), include_str!("exchange_zones.txt").lines().count());
    }

    fn check(times: &[&str], expected: &str) {
        let parsed: Vec<NaiveDateTime> = times.iter().map(|text| parse_utc_time(text).unwrap()).collect();
        let found = match interpret_utc_times(&parsed) {
            UtcTimeInterpretation::AsWritten => "as written".to_owned(),
            UtcTimeInterpretation::LocalDays(zone) => zone.to_string(),
            UtcTimeInterpretation::Uncertain(zone) => format!("uncertain {zone}"),
            UtcTimeInterpretation::Times => "times".to_owned(),
        };
        assert_eq!(found, expected, "{times:?}");
    }

    #[test]
    fn midnights_name_their_zone_if_the_day_is_certain() {
        check(&["2024-11-21T00:00:00+0000", "2024-07-01 00:00:00Z"], "as written");
        check(&["2024-01-02 05:00:00+00:00", "2024-07-01 04:00:00+00:00"], "America/New_York");
        check(&["2024-07-01T04:00:00.000Z"], "America/New_York");
        check(&["2021-06-30 22:00:00+00:00"], "uncertain Europe/Berlin");
        check(&["2021-06-30 22:00:00+00:00", "2021-12-29 23:00:00+00:00"], "Europe/Berlin");
        check(&["2021-06-27 22:00:00+00:00", "2021-06-28 22:00:00+00:00"], "Europe/Berlin");
        check(&["2021-06-30 23:00:00Z", "2021-12-30 00:00:00Z"], "Europe/London");
        check(&["2024-01-07 15:00:00Z", "2024-01-08 15:00:00Z"], "Asia/Tokyo");
        check(&["2024-01-08 18:30:00 UTC"], "uncertain Asia/Kolkata");
    }

    #[test]
    fn times_of_day_are_no_midnights() {
        // Closes in Chicago have the UTC times of midnights in Helsinki, but also occur on Fridays.
        check(&["2024-07-03 21:00:00Z", "2024-07-05 21:00:00Z", "2024-12-02 22:00:00Z"], "times");
        check(&["2024-01-02 14:30:00Z"], "times");
        check(&["2024-01-02 05:00:00Z", "2024-01-02 06:00:00Z"], "times");
        check(&["2024-01-02 05:00:00Z", "2024-07-01 05:00:00Z"], "America/Bogota");
        for text in
            ["2024-01-02", "2024-01-02 05:00:00", "2024-01-02 05:00:00-05:00", "x", "2024-01-02T25:00Z"]
        {
            assert_eq!(parse_utc_time(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_read_day_is_the_local_day(
            zone in select(ZONES.iter().map(|(zone, _)| zone.0).collect::<Vec<Tz>>()),
            first in 0u64..9000,
            steps in prop::collection::vec(1u64..40, 1..60),
        ) {
            let mut day = NaiveDate::from_ymd_opt(2000, 1, 3).unwrap() + Days::new(first);
            let mut days = Vec::new();
            for step in steps {
                let weekend = matches!(day.weekday(), Weekday::Sat | Weekday::Sun);
                days.extend((!weekend).then_some(day));
                day = day + Days::new(step);
            }
            let midnight = |day: &NaiveDate| {
                let local = day.and_time(NaiveTime::MIN).and_local_timezone(zone).earliest()?;
                Some(local.naive_utc())
            };
            let times: Option<Vec<NaiveDateTime>> = days.iter().map(midnight).collect();
            prop_assume!(times.as_ref().is_some_and(|times| !times.is_empty()));
            let times = times.unwrap();
            if let UtcTimeInterpretation::LocalDays(found) = interpret_utc_times(&times) {
                let read: Vec<NaiveDate> = times.iter().map(|utc_time| found.local_date(*utc_time)).collect();
                prop_assert_eq!(read, days);
            }
        }
    }
}
