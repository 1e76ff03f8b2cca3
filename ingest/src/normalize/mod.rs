//! Normalization of feed values: dates, numbers, currencies, symbols, and rules of a single row.
//!
//! All functions are pure. An invalid value gives a [`RowError`]: a stable reason code and a message with the column
//! and the cause.

mod cells;
mod date;
mod fault;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use cells::RecordCells;
pub(crate) use date::{parse_date, parse_duration, parse_time, parse_session_date};
pub(crate) use fault::{RowError, abbreviate};
pub(crate) use text::{is_absent_value, trim_blanks, parse_web_address};
