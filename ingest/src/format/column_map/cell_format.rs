//! Formats of cells in a map: dates (`DD.MM.YYYY`, `MMM D, YYYY`, `YYYYMMDD`) and numbers (`1.234,56`, `$227.55`, `45.2M`).
//!
//! Every step uses text or an exact decimal, never a binary float.

use std::borrow::Cow;

use chrono::{Month, NaiveDate, NaiveDateTime, NaiveTime};
use market::decimal::parse_figure;
use rust_decimal::Decimal;

use crate::normalize::{ExchangeZone, RowError, abbreviate, from_unix_seconds, parse_utc_time};

/// Description of allowed date formats, for error messages.
pub(super) const ALLOWED: &str = "YYYY, YY, MM and DD (one or two digits), MMM (Jan, January) and the characters between them, such as DD.MM.YYYY; or unix, unix_ms";

/// Part of a date format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DatePart {
    Year,
    ShortYear,
    Month,
    MonthName,
    Day,
    Sign(char),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DateFormat {
    Parts(Vec<DatePart>),
    /// Unix time, with the number of time units per second: 1 for seconds, 1000 for milliseconds.
    Unix(i64),
}

impl DateFormat {
    /// Parses a format; `None` if year, month or day is missing or repeated.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "unix" => return Some(Self::Unix(1)),
            "unix_ms" => return Some(Self::Unix(1000)),
            _ => {}
        }
        let words = [
            ("YYYY", DatePart::Year),
            ("YY", DatePart::ShortYear),
            ("MMM", DatePart::MonthName),
            ("MM", DatePart::Month),
            ("M", DatePart::Month),
            ("DD", DatePart::Day),
            ("D", DatePart::Day),
        ];
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some(first) = rest.chars().next() {
            let word = words.iter().find_map(|(word, part)| Some((rest.strip_prefix(word)?, part.clone())));
            let (after, part) = word.unwrap_or_else(|| (&rest[first.len_utf8()..], DatePart::Sign(first)));
            parts.push(part);
            rest = after;
        }
        let count = |wanted: &[DatePart]| parts.iter().filter(|part| wanted.contains(part)).count();
        let whole = count(&[DatePart::Year, DatePart::ShortYear]) == 1
            && count(&[DatePart::Month, DatePart::MonthName]) == 1
            && count(&[DatePart::Day]) == 1;
        whole.then_some(Self::Parts(parts))
    }

    /// Converts a Unix time to a UTC time; `None` for formats with date parts, and for invalid text.
    fn read_time(&self, text: &str) -> Option<NaiveDateTime> {
        let Self::Unix(a_second) = self else { return None };
        let ticks: i64 = text.strip_suffix(".0").unwrap_or(text).parse().ok()?;
        from_unix_seconds(ticks.div_euclid(*a_second))
    }

    /// Date at the beginning of a text, and the rest of the text.
    fn read<'a>(&self, text: &'a str) -> Option<(NaiveDate, &'a str)> {
        let parts = match self {
            Self::Parts(parts) => parts,
            Self::Unix(_) => {
                let time = self.read_time(text)?;
                return Some((time.date(), if time.time() == NaiveTime::MIN { "" } else { " UTC:" }));
            }
        };
        let (mut year, mut month, mut day, mut rest) = (0, 0, 0, text);
        for part in parts {
            rest = match part {
                DatePart::Year => digits(rest, 4, 4, &mut year)?,
                DatePart::ShortYear => {
                    let after = digits(rest, 2, 2, &mut year)?;
                    year += if year < 69 { 2000 } else { 1900 };
                    after
                }
                DatePart::Month => digits(rest, 1, 2, &mut month)?,
                DatePart::MonthName => month_name(rest, &mut month)?,
                DatePart::Day => digits(rest, 1, 2, &mut day)?,
                DatePart::Sign(sign) => rest.strip_prefix(*sign)?,
            };
        }
        Some((NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?, rest))
    }
}

/// Parses a date with the first format that fits. A time of day in the text must be midnight.
///
/// With `zone`, the date of a Unix time, or of a UTC time at local midnight, is the local date.
pub(super) fn read_date(
    formats: &[DateFormat],
    zone: Option<ExchangeZone>,
    column: &str,
    text: &str,
) -> Result<NaiveDate, RowError> {
    let mut timed = false;
    if let Some(zone) = zone {
        if let Some(time) = formats.iter().find_map(|format| format.read_time(text)) {
            return Ok(zone.local_date(time));
        }
        if let Some(day) = parse_utc_time(text).and_then(|utc_time| zone.day_beginning_at(utc_time)) {
            return Ok(day);
        }
    }
    for format in formats {
        match format.read(text) {
            Some((date, rest)) if is_midnight(rest) => return Ok(date),
            Some((_, rest)) => timed |= rest.starts_with([' ', 'T']) && rest.contains(':'),
            None => {}
        }
    }
    let shown = abbreviate(text.as_bytes());
    let (reason, fault) = match timed {
        true => (
            "intraday_row",
            "has a time of day: only daily rows are loaded; for times in UTC, the map's dates.zone is the exchange's time zone",
        ),
        false => ("bad_date", "does not match the map's dates.format"),
    };
    Err(RowError::new(reason, format_args!("{column} {shown:?} {fault}")))
}

/// Parser of dates in one format, for the inference of formats. It returns `None` for a text that does not fit.
pub(crate) fn date_parser(format: &str) -> impl Fn(&str) -> Option<NaiveDate> {
    let format = DateFormat::parse(format);
    move |text| {
        let (date, rest) = format.as_ref()?.read(text)?;
        is_midnight(rest).then_some(date)
    }
}

/// True if the text after a date is empty or a time of midnight.
fn is_midnight(rest: &str) -> bool {
    let Some(time) = rest.strip_prefix([' ', 'T']).map(str::trim_start) else { return rest.is_empty() };
    let offset = time.find(['+', '-', 'Z']).unwrap_or(time.len());
    let (clock, zone) = time.split_at(offset);
    clock.starts_with('0')
        && clock.trim_end().bytes().all(|byte| b"0:.".contains(&byte))
        && zone.bytes().all(|byte| byte.is_ascii_digit() || b"+-:Z".contains(&byte))
}

/// Reads a number with `least` to `most` digits.
fn digits<'a>(text: &'a str, least: usize, most: usize, number: &mut u32) -> Option<&'a str> {
    let count = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(count);
    *number = digits.parse().ok().filter(|_| count >= least)?;
    Some(rest)
}

/// Reads the full or abbreviated English name of a month.
fn month_name<'a>(text: &'a str, month: &mut u32) -> Option<&'a str> {
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (name, rest) = text.split_at(letters);
    let is_named = |month: Month| {
        letters >= 3 && month.name().get(..letters).is_some_and(|begin| begin.eq_ignore_ascii_case(name))
    };
    *month = (1..=12).find(|number| Month::try_from(*number).is_ok_and(is_named))?.into();
    Some(rest)
}

/// Notation of the numbers in a file: separators, other characters and suffixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NumberFormat {
    /// Decimal separator: `.` or `,`.
    pub(super) decimal: char,
    pub(super) thousands: Option<char>,
    /// Characters that are not part of a number.
    pub(super) strip: String,
    /// True if the suffixes K, M, B and T are multipliers: `45.2M` is 45,200,000.
    pub(super) suffixes: bool,
}

impl NumberFormat {
    /// Converts a number to canonical notation, and multiplies it by a factor.
    pub(super) fn read<'a>(
        &self,
        column: &str,
        text: &'a str,
        factor: Option<Decimal>,
    ) -> Result<Cow<'a, str>, RowError> {
        let bad = |why: &str| {
            let shown = abbreviate(text.as_bytes());
            RowError::new("bad_number", format_args!("{column} {shown:?} {why}"))
        };
        let mut plain = Cow::Borrowed(text);
        if text.contains(|c| self.strip.contains(c)) {
            plain = Cow::Owned(text.chars().filter(|c| !self.strip.contains(*c)).collect());
        }
        if let Some(sign) = self.thousands
            && plain.contains(|c| is_thousands(sign, c))
        {
            let joined = self.without_thousands(sign, &plain);
            plain = Cow::Owned(joined.ok_or_else(|| {
                bad("does not group its digits by threes, as the map's numbers.thousands requires")
            })?);
        }
        if self.decimal == ',' && plain.contains(['.', ',']) {
            if plain.contains('.') {
                return Err(bad("has a point, but the map's numbers.decimal is a comma"));
            }
            plain = Cow::Owned(plain.replacen(',', ".", 1));
        }
        let unit = self.suffixes.then(|| split_multiplier(plain.trim())).flatten();
        let (number, unit) = unit.map_or((None, Decimal::ONE), |(number, unit)| (Some(number), unit));
        if number.is_none() && factor.is_none() {
            return Ok(plain);
        }
        let number = number.unwrap_or(plain.trim());
        let product = parse_figure(number)
            .ok()
            .filter(|parsed| !parsed.rounded)
            .and_then(|parsed| parsed.value.checked_mul(unit)?.checked_mul(factor.unwrap_or(Decimal::ONE)));
        product
            .map(|product| Cow::Owned(product.normalize().to_string()))
            .ok_or_else(|| bad("is not a number that the map can scale"))
    }

    /// Number without thousands separators; `None` if a separator is at a wrong position.
    fn without_thousands(&self, sign: char, text: &str) -> Option<String> {
        let trimmed = text.trim();
        let (whole, fraction) = trimmed.split_at(trimmed.find(self.decimal).unwrap_or(trimmed.len()));
        let mut groups = whole.split(|c| is_thousands(sign, c));
        let first = groups.next()?.trim_start_matches(['-', '+']);
        let grouped = (1..=3).contains(&first.len()) && groups.all(|group| group.len() == 3);
        let outside = fraction.contains(|c| is_thousands(sign, c));
        (grouped && !outside).then(|| text.chars().filter(|c| !is_thousands(sign, *c)).collect())
    }
}

/// True if `c` is the thousands separator `sign`. If `sign` is a space, a non-breaking or thin space counts too.
fn is_thousands(sign: char, c: char) -> bool {
    c == sign || sign == ' ' && matches!(c, '\u{a0}' | '\u{202f}' | '\u{2009}')
}

/// Number and multiplier of a text: `45.2M` is 45.2 and one million.
fn split_multiplier(text: &str) -> Option<(&str, Decimal)> {
    let unit = match text.as_bytes().last()?.to_ascii_uppercase() {
        b'K' => 1_000,
        b'M' => 1_000_000,
        b'B' => 1_000_000_000,
        b'T' => 1_000_000_000_000_i64,
        _ => return None,
    };
    Some((text[..text.len() - 1].trim_end(), Decimal::from(unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: &str, text: &str, expected: &str) {
        let found = read_date(&[DateFormat::parse(format).unwrap()], None, "date", text);
        let found = found.map_or_else(|fault| fault.reason.to_owned(), |date| date.to_string());
        assert_eq!(found, expected, "{text} as {format}");
    }

    #[test]
    fn dates_are_read_as_the_map_says() {
        check("DD.MM.YYYY", "02.01.2024", "2024-01-02");
        check("DD.MM.YYYY", "2.1.2024", "2024-01-02");
        check("MM/DD/YYYY", "01/02/2024", "2024-01-02");
        check("MM/DD/YYYY 16:00:00", "1/2/2014 16:00:00", "2014-01-02");
        check("YYYYMMDD", "20240102", "2024-01-02");
        check("YYYYMMDD", "20240102 00:00", "2024-01-02");
        check("YYYY-MM-DD", "2024-01-02T00:00:00.000Z", "2024-01-02");
        check("YYYY-MM-DD", "2024-01-02 00:00:00-05:00", "2024-01-02");
        check("DD-MMM-YY", "3-Sept-99", "1999-09-03");
        check("MMM DD, YYYY", "January 02, 2024", "2024-01-02");
        check("unix", "1704153600", "2024-01-02");
        check("unix", "1704171600", "intraday_row");
        let zone = ExchangeZone::parse("Europe/Berlin");
        let day = |format: &str, text: &str| {
            let found = read_date(&[DateFormat::parse(format).unwrap()], zone, "date", text);
            found.map_or_else(|fault| fault.reason.to_owned(), |date| date.to_string())
        };
        assert_eq!(day("unix", "1625090400"), "2021-07-01");
        assert_eq!(day("YYYY-MM-DD", "2021-06-30 22:00:00+00:00"), "2021-07-01");
        assert_eq!(day("YYYY-MM-DD", "2021-06-30"), "2021-06-30");
        assert_eq!(day("YYYY-MM-DD", "2021-06-30 21:00:00Z"), "intraday_row");
        check("unix_ms", "1704153600000", "2024-01-02");
    }

    #[test]
    fn what_is_written_otherwise_is_a_fault() {
        check("DD.MM.YYYY", "13/01/2024", "bad_date");
        check("DD.MM.YYYY", "32.01.2024", "bad_date");
        check("DD.MM.YY", "02.01.2024", "bad_date");
        check("YYYY-MM-DD", "2024-01-02 09:30", "intraday_row");
        check("YYYY-MM-DD", "2024-01-02/2024-01-08", "bad_date");
        check("MMM DD, YYYY", "Ja 02, 2024", "bad_date");
        assert_eq!(DateFormat::parse("DD.MM"), None);
        assert_eq!(DateFormat::parse("DD.MM.YYYY.YY"), None);
    }
}

#[cfg(test)]
mod number_format_tests {
    use super::*;

    fn format(decimal: char, thousands: Option<char>) -> NumberFormat {
        NumberFormat { decimal, thousands, strip: "$€".to_owned(), suffixes: true }
    }

    fn check(format: &NumberFormat, text: &str, factor: Option<&str>, expected: &str) {
        let factor = factor.map(|factor| factor.parse().unwrap());
        let found = format.read("close", text, factor).unwrap_or_else(|fault| fault.message.into());
        assert!(found == expected || found.contains("close") && found.contains(expected), "{text}: {found}");
    }

    #[test]
    fn numbers_are_read_as_the_map_says() {
        let german = format(',', Some('.'));
        check(&german, "1.234.567,89 ", None, "1234567.89 ");
        check(&german, "-1.234,5", None, "-1234.5");
        check(&german, "0,1", None, "0.1");
        check(&german, "€ 1.234,50", None, " 1234.50");
        let english = format('.', Some(','));
        check(&english, "$1,234.56", None, "1234.56");
        check(&english, "45.23M", None, "45230000");
        check(&format(',', Some(' ')), "12\u{a0}345,6", None, "12345.6");
        check(&english, "1234500", Some("0.0001"), "123.45");
        check(&english, "0.1", Some("3"), "0.3");
    }

    #[test]
    fn what_a_map_gets_wrong_is_a_fault_and_no_other_number() {
        let german = format(',', Some('.'));
        check(&german, "1.5", None, "by threes");
        check(&german, "1234.567", None, "by threes");
        check(&german, "1,234.567", None, "by threes");
        check(&format(',', None), "1.5", None, "has a point");
        check(&german, "abc", Some("2"), "is not a number");
        check(&format('.', Some(',')), "$  1,234.é", Some("2"), "is not a number");
        check(&german, "0,12345678901", Some("2"), "is not a number");
    }
}
