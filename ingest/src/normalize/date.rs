//! Parsers of dates and times.

use chrono::{DateTime, NaiveDate, Utc};

use super::cell_text::is_absent_value;
use super::exchange_zone::{ExchangeZone, parse_utc_time};
use super::row_error::{RowError, abbreviate};

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
