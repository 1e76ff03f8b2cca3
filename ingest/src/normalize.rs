//! From a feed's words to values: dates, numbers, currencies, symbols, and the rules a row shows by itself.
//!
//! Everything here is pure. What cannot be used is a [`Fault`]: a stable reason code and a sentence that names the
//! column and says what is wrong with it.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use market::measure::merge::RowFault;
use market::reference::{Country, Exchange, Sector};
use market::symbol::Symbol;
use market::value::{NumberError, Parsed, parse_decimal, parse_figure};
use rust_decimal::Decimal;

/// Why a row cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Stable code, part of the interface.
    pub reason: &'static str,
    pub message: String,
}

impl Fault {
    /// A fault with its sentence.
    pub(crate) fn new(reason: &'static str, message: impl fmt::Display) -> Self {
        Self { reason, message: message.to_string() }
    }

    /// What a row rule says.
    pub(crate) fn rule((reason, message): RowFault) -> Self {
        Self { reason: reason.as_str(), message }
    }

    /// A required value that is absent.
    pub(crate) fn missing(column: &str) -> Self {
        Self::new("missing_field", format_args!("{column} is required and empty: fill it in"))
    }

    /// A text that is not a number, or not one the service can hold.
    pub(crate) fn number(column: &str, text: &[u8], error: NumberError) -> Self {
        let reason = match error {
            NumberError::Malformed => "bad_number",
            NumberError::TooLarge => "number_too_large",
        };
        Self::new(reason, format_args!("{column} {:?} {error}", shown(text)))
    }

    /// A text that is not a symbol.
    pub(crate) fn symbol(column: &str, text: &[u8]) -> Self {
        Self::new("bad_symbol", format_args!("{column} {:?} {}", shown(text), market::symbol::SymbolError))
    }

    /// A row dated after the last day a feed can know.
    pub(crate) fn future(column: &str, date: NaiveDate, today: NaiveDate) -> Self {
        let message = format_args!(
            "{column} {date} is later than the day after {today}: correct it, or load the row in a new file when that day has come"
        );
        Self::new("future_date", message)
    }
}

/// Text for a message: readable and short.
pub(crate) fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    if text.chars().count() <= 40 {
        text.into_owned()
    } else {
        text.chars().take(40).chain(['…']).collect()
    }
}

/// Whether a cell says that there is no value.
pub(crate) fn is_absent(text: &[u8]) -> bool {
    matches!(text, b"" | b"null" | b"N/A" | b"n/a" | b"NULL" | b"0000-00-00")
}

/// A web address; `None` for any other scheme, which a page could not link to safely.
pub(crate) fn web_address(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    let has_host = rest.starts_with(|c: char| c.is_alphanumeric() || c == '[');
    (is_web && has_host && !text.contains(is_odd)).then_some(text)
}

/// Takes blanks off both ends.
pub(crate) fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

/// Reads `YYYY-MM-DD`, and nothing else.
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

/// Reads the date of a price row: one exchange session, so no time of day, no week, no range.
pub(crate) fn session_date(column: &str, text: &[u8]) -> Result<NaiveDate, Fault> {
    if let Some(date) = parse_date(text) {
        return Ok(date);
    }
    if is_absent(text) {
        return Err(Fault::missing(column));
    }
    let shown = shown(text);
    match text.get(..10).and_then(parse_date) {
        Some(_) if matches!(text[10], b'T' | b' ') && text.contains(&b':') => Err(Fault::new(
            "intraday_row",
            format_args!("{column} {shown:?} has a time of day: only daily rows are loaded"),
        )),
        Some(_) => Err(Fault::new(
            "weekly_row",
            format_args!("{column} {shown:?} is not one day: only daily rows are loaded"),
        )),
        None if shown.contains("-W") => Err(Fault::new(
            "weekly_row",
            format_args!("{column} {shown:?} is a week: only daily rows are loaded"),
        )),
        None => Err(bad_date(column, text)),
    }
}

fn bad_date(column: &str, text: &[u8]) -> Fault {
    Fault::new("bad_date", format_args!("{column} {:?} is not a date: write YYYY-MM-DD", shown(text)))
}

/// A currency, in its major unit; `minor` names the unit the amounts beside it are in, 100 to one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Currency {
    pub code: String,
    pub minor: Option<&'static str>,
}

impl Currency {
    /// The dollar of feeds that name no currency.
    pub fn dollar() -> Self {
        Self { code: "USD".to_owned(), minor: None }
    }

    /// Brings an amount to the major unit.
    pub fn major(&self, amount: Decimal) -> Decimal {
        if self.minor.is_none() {
            return amount;
        }
        let mut amount = amount;
        // Moving the point is exact; the digits past the tenth place are rounded as on entry.
        match amount.set_scale(amount.scale() + market::event::MINOR_UNIT_PLACES) {
            Ok(()) => market::value::round(amount, market::value::MAX_FRACTION_DIGITS),
            Err(_) => amount / Decimal::ONE_HUNDRED,
        }
    }
}

/// Reads a currency code; minor units (R4) are told by their spelling, where `GBp` and `GBP` differ.
pub(crate) fn parse_currency(text: &str) -> Option<Currency> {
    let (code, minor) = match text {
        "GBX" | "GBx" | "gbx" | "GBp" => ("GBP", Some("GBX")),
        "ZAc" | "ZAC" | "zac" => ("ZAR", Some("ZAC")),
        "ILA" | "ila" | "ILa" => ("ILS", Some("ILA")),
        _ => (text, None),
    };
    let valid = code.len() == 3 && code.bytes().all(|b| b.is_ascii_alphabetic());
    valid.then(|| Currency { code: code.to_ascii_uppercase(), minor })
}

/// The cells of one record, by column name.
pub(crate) struct Cells<'a> {
    names: &'static [&'static str],
    values: Vec<Option<Cow<'a, str>>>,
    rounded: Cell<u64>,
}

impl<'a> Cells<'a> {
    /// An empty record with the columns `names`.
    pub(crate) fn new(names: &'static [&'static str]) -> Self {
        Self { names, values: vec![None; names.len()], rounded: Cell::new(0) }
    }

    /// Sets the cell at a column's index; blanks around it are dropped, and an empty one is absent.
    pub(crate) fn set(&mut self, index: usize, value: Cow<'a, str>) {
        let trimmed = match value {
            Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
            Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
        };
        self.values[index] = (!trimmed.is_empty()).then_some(trimmed);
    }

    /// Numbers whose excess fraction digits were rounded so far.
    pub(crate) fn rounded(&self) -> u64 {
        self.rounded.get()
    }

    /// A text as it stands.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let index = self.names.iter().position(|known| *known == name)?;
        self.values[index].as_deref()
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.text(name).filter(|text| !is_absent(text.as_bytes()))
    }

    /// A text that may not be absent.
    pub(crate) fn required(&self, name: &str) -> Result<&str, Fault> {
        self.value(name).ok_or_else(|| Fault::missing(name))
    }

    /// An optional text.
    pub(crate) fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    /// An optional sector, by its one name where it is one of the eleven.
    pub(crate) fn sector(&self, name: &str) -> Option<String> {
        self.value(name).map(|text| Sector::find(text).map_or(text, |sector| sector.name).to_owned())
    }

    /// An optional exchange, by its market identifier code where it is known.
    pub(crate) fn exchange(&self, name: &str) -> Option<String> {
        self.value(name).map(|text| Exchange::find(text).map_or(text, |exchange| exchange.mic).to_owned())
    }

    /// An optional country, by its two-letter code where it is one.
    pub(crate) fn country(&self, name: &str) -> Option<String> {
        self.value(name).map(|text| Country::find(text).map_or(text, |country| country.code).to_owned())
    }

    /// An optional date.
    pub(crate) fn date(&self, name: &str) -> Result<Option<NaiveDate>, Fault> {
        let Some(text) = self.value(name) else { return Ok(None) };
        parse_date(text.as_bytes()).map(Some).ok_or_else(|| bad_date(name, text.as_bytes()))
    }

    /// A date that may not be absent.
    pub(crate) fn required_date(&self, name: &str) -> Result<NaiveDate, Fault> {
        self.date(name)?.ok_or_else(|| Fault::missing(name))
    }

    /// An optional amount or price: at most ten integer digits.
    pub(crate) fn amount(&self, name: &str) -> Result<Option<Decimal>, Fault> {
        self.decimal(name, parse_decimal)
    }

    /// An optional company figure: at most 18 integer digits.
    pub(crate) fn figure(&self, name: &str) -> Result<Option<Decimal>, Fault> {
        self.decimal(name, parse_figure)
    }

    fn decimal(
        &self,
        name: &str,
        parse: fn(&str) -> Result<Parsed, NumberError>,
    ) -> Result<Option<Decimal>, Fault> {
        let Some(text) = self.value(name) else { return Ok(None) };
        let parsed = parse(text).map_err(|error| Fault::number(name, text.as_bytes(), error))?;
        self.rounded.set(self.rounded.get() + u64::from(parsed.rounded));
        Ok(Some(parsed.value))
    }

    /// An optional whole number.
    pub(crate) fn integer<T: TryFrom<i64>>(&self, name: &str) -> Result<Option<T>, Fault> {
        let Some(value) = self.figure(name)? else { return Ok(None) };
        let integer = value.is_integer().then(|| i64::try_from(value.mantissa()).ok()).flatten();
        let integer = integer.and_then(|integer| T::try_from(integer).ok());
        integer
            .map(Some)
            .ok_or_else(|| Fault::new("bad_number", format_args!("{name} {value} is not a whole number")))
    }

    /// An optional yes or no.
    pub(crate) fn boolean(&self, name: &str) -> Result<Option<bool>, Fault> {
        let Some(text) = self.value(name) else { return Ok(None) };
        match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "y" | "1" => Ok(Some(true)),
            "false" | "no" | "n" | "0" => Ok(Some(false)),
            _ => Err(Fault::new("bad_value", format_args!("{name} {text:?} must be true or false"))),
        }
    }

    /// An optional word of a fixed list.
    pub(crate) fn word<T: FromStr<Err = String>>(&self, name: &str) -> Result<Option<T>, Fault> {
        let Some(text) = self.value(name) else { return Ok(None) };
        let parsed = text.to_ascii_lowercase().parse().map(Some);
        parsed.map_err(|message: String| Fault::new("bad_value", format_args!("{name} {text:?} {message}")))
    }

    /// An optional symbol, in entry form.
    pub(crate) fn symbol(&self, name: &str) -> Result<Option<Symbol>, Fault> {
        let Some(text) = self.value(name) else { return Ok(None) };
        Symbol::parse(text).map(Some).map_err(|_| Fault::symbol(name, text.as_bytes()))
    }

    /// A symbol that may not be absent.
    pub(crate) fn required_symbol(&self, name: &str) -> Result<Symbol, Fault> {
        self.symbol(name)?.ok_or_else(|| Fault::missing(name))
    }

    /// An optional currency.
    pub(crate) fn currency(&self, name: &str) -> Result<Option<Currency>, Fault> {
        let Some(text) = self.value(name) else { return Ok(None) };
        let message = format_args!("{name} {text:?} is not a currency: write its ISO 4217 code, such as USD");
        parse_currency(text).map(Some).ok_or_else(|| Fault::new("bad_value", message))
    }

    /// An optional point in time.
    pub(crate) fn time(&self, name: &str) -> Result<Option<DateTime<Utc>>, Fault> {
        let Some(text) = self.value(name) else { return Ok(None) };
        let message =
            format_args!("{name} {text:?} is not a time: write RFC 3339, such as 2024-03-15T21:00:00Z");
        parse_time(text).map(Some).ok_or_else(|| Fault::new("bad_date", message))
    }
}

/// A number and its unit: `90s`, `26h`, `2d`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let expected = || "a number and s, m, h or d, such as 26h".to_owned();
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = text[..text.len() - unit.len()].parse().map_err(|_| expected())?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(expected()),
    };
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(expected)
}

/// Reads an RFC 3339 time, to the microsecond the log keeps.
pub(crate) fn parse_time(text: &str) -> Option<DateTime<Utc>> {
    let time = DateTime::parse_from_rfc3339(text).ok()?.with_timezone(&Utc);
    DateTime::from_timestamp_micros(time.timestamp_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(parse_duration("26h"), Ok(Duration::from_secs(26 * 3600)));
        assert_eq!(parse_duration("90m"), Ok(Duration::from_secs(90 * 60)));
        assert!(
            ["26", "h", "-1h", "1w", "99999999999999999999d"]
                .iter()
                .all(|text| parse_duration(text).is_err())
        );
    }

    #[test]
    fn dates_are_days() {
        assert_eq!(parse_date(b"2024-02-29"), NaiveDate::from_ymd_opt(2024, 2, 29));
        for text in ["2023-02-29", "2024-1-02", "20240102", "2024-13-01", "2024-01-0x", ""] {
            assert_eq!(parse_date(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_price_row_is_one_session() {
        let reason = |text: &str| session_date("date", text.as_bytes()).map_err(|fault| fault.reason);
        assert!(reason("2024-01-02").is_ok());
        assert_eq!(reason("2024-01-02T09:30:00"), Err("intraday_row"));
        assert_eq!(reason("2024-01-02 00:00"), Err("intraday_row"));
        assert_eq!(reason("2024-01-02/2024-01-08"), Err("weekly_row"));
        assert_eq!(reason("2024-W05"), Err("weekly_row"));
        assert_eq!(reason("0000-00-00"), Err("missing_field"));
        assert_eq!(reason("02/01/2024"), Err("bad_date"));
    }

    #[test]
    fn minor_currency_units_become_major_ones() {
        for (text, code, divided) in [
            ("GBX", "GBP", true),
            ("GBp", "GBP", true),
            ("GBP", "GBP", false),
            ("ZAc", "ZAR", true),
            ("ILA", "ILS", true),
            ("usd", "USD", false),
        ] {
            let currency = parse_currency(text).unwrap();
            assert_eq!((currency.code.as_str(), currency.minor.is_some()), (code, divided), "{text}");
        }
        assert_eq!(parse_currency("GBX").unwrap().major(Decimal::new(5, 0)).to_string(), "0.05");
        assert!(parse_currency("US").is_none() && parse_currency("$$$").is_none());
    }

    #[test]
    fn absent_words_are_absent_and_texts_are_not() {
        let mut cells = Cells::new(&["ex_date", "amount", "name"]);
        for word in ["", "  ", "N/A", "null", "0000-00-00"] {
            (0..3).for_each(|index| cells.set(index, word.into()));
            assert_eq!((cells.date("ex_date"), cells.amount("amount")), (Ok(None), Ok(None)), "{word}");
        }
        cells.set(2, " N/A Corp ".into());
        assert_eq!(cells.text("name"), Some("N/A Corp"));
    }

    #[test]
    fn excess_digits_are_rounded_and_counted() {
        let mut cells = Cells::new(&["amount"]);
        cells.set(0, "0.123456789012".into());
        assert_eq!(cells.amount("amount").unwrap().unwrap().to_string(), "0.123456789");
        assert_eq!(cells.rounded(), 1);
        cells.set(0, "12345678901".into());
        assert_eq!(cells.amount("amount").unwrap_err().reason, "number_too_large");
    }
}
