//! Normalization of feed values: dates, numbers, currencies, symbols, and rules of a single row.
//!
//! All functions are pure. An invalid value gives a [`RowError`]: a stable reason code and a message with the column
//! and the cause.

mod record_cells;
mod date;
mod row_error;
#[cfg(test)]
mod tests;
mod cell_text;

pub(crate) use record_cells::RecordCells;
pub(crate) use date::{parse_date, parse_duration, parse_time, parse_session_date};
pub(crate) use row_error::{RowError, abbreviate};
pub(crate) use cell_text::{is_absent_value, trim_blanks, parse_web_address};
