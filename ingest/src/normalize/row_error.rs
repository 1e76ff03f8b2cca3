//! Row error: reason code and message of an invalid row. Texts of cells: symbols, currencies, web addresses, words for
//! absent values.

use std::fmt;

use chrono::NaiveDate;
use market::decimal::DecimalError;
use market::metrics::currency::Currency;
use market::metrics::merge::RowFault;
use market::symbol::Symbol;
use telemetry::shorten;

/// Maximum length of a message, in characters. A longer message is truncated, because it may quote a whole cell.
const MAX_MESSAGE_CHARS: usize = 500;
/// Maximum length of a quoted cell or name, in characters.
const MAX_QUOTED_CHARS: usize = 40;

/// Error of an invalid row. The row becomes a reject with this reason code and message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowError {
    /// Reason code, such as `bad_date`. The codes are part of the public interface and do not change.
    pub reason: &'static str,
    pub message: String,
}

impl RowError {
    pub(crate) fn new(reason: &'static str, message: impl fmt::Display) -> Self {
        Self { reason, message: shorten(&message.to_string(), MAX_MESSAGE_CHARS) }
    }

    /// Error for a row that violates a domain rule.
    pub(crate) fn from_rule((reason, message): RowFault) -> Self {
        Self::new(reason.as_str(), message)
    }

    /// Error for a missing required value.
    pub(crate) fn missing_value(column: &str) -> Self {
        Self::new("missing_field", format_args!("{column} is required and empty: fill it in"))
    }

    /// Error for an invalid or too large number.
    pub(crate) fn invalid_number(column: &str, text: &[u8], error: DecimalError) -> Self {
        let reason = match error {
            DecimalError::Malformed => "bad_number",
            DecimalError::TooLarge => "number_too_large",
        };
        Self::new(reason, format_args!("{column} {:?} {error}", abbreviate(text)))
    }

    /// Error for an invalid symbol.
    pub(crate) fn invalid_symbol(column: &str, text: &[u8]) -> Self {
        Self::new(
            "bad_symbol",
            format_args!("{column} {:?} {}", abbreviate(text), market::symbol::SymbolError),
        )
    }

    /// Error for a date later than the day after `today`.
    pub(crate) fn future_date(column: &str, date: NaiveDate, today: NaiveDate) -> Self {
        let message = format_args!(
            "{column} {date} is later than the day after {today}: correct it, or load the row in a new file when that day has come"
        );
        Self::new("future_date", message)
    }
}

/// Parses a symbol in a column.
pub(crate) fn parse_symbol(column: &str, text: &str) -> Result<Symbol, RowError> {
    Symbol::parse(text).map_err(|_| RowError::invalid_symbol(column, text.as_bytes()))
}

/// Parses a currency in a column.
pub(crate) fn parse_currency(column: &str, text: &str) -> Result<Currency, RowError> {
    let message = format_args!("{column} {text:?} is not a currency: write its ISO 4217 code, such as USD");
    Currency::parse(text).ok_or_else(|| RowError::new("bad_value", message))
}

/// Shortens a text for a message.
pub(crate) fn abbreviate(text: &[u8]) -> String {
    shorten(&String::from_utf8_lossy(text), MAX_QUOTED_CHARS)
}

/// True if a cell is empty, or contains a word for an absent value such as `N/A`.
pub(crate) fn is_absent_value(text: &[u8]) -> bool {
    matches!(text, b"" | b"null" | b"N/A" | b"n/a" | b"NULL" | b"0000-00-00")
}

/// Parses a web address. `None` if the scheme is not http or https, because other links may be unsafe.
pub(crate) fn parse_web_address(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    let has_host = rest.starts_with(|c: char| c.is_alphanumeric() || c == '[');
    (is_web && has_host && !text.contains(is_odd)).then_some(text)
}
