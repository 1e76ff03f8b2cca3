//! Reject reasons: codes and messages of rows that cannot be used.

use std::fmt;

use chrono::NaiveDate;
use market::decimal::DecimalError;
use market::metrics::merge::RowFault;

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
    pub(crate) fn number(column: &str, text: &[u8], error: DecimalError) -> Self {
        let reason = match error {
            DecimalError::Malformed => "bad_number",
            DecimalError::TooLarge => "number_too_large",
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
