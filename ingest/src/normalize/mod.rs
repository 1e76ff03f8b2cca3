//! Normalization of feed values: dates, numbers, currencies, symbols, and rules for a single row. All functions are
//! pure. Invalid values give a [`RowError`] with a stable reason code.

mod cell_text;
mod date;
mod exchange_zone;
mod record_cells;
mod row_error;
#[cfg(test)]
mod tests;

pub(crate) use cell_text::{is_absent_value, parse_web_address};
pub(crate) use date::{parse_date, parse_session_date, parse_time};
pub(crate) use exchange_zone::{
    ExchangeZone, UtcTimeInterpretation, from_unix_seconds, interpret_utc_times, parse_utc_time,
};
pub(crate) use record_cells::RecordCells;
pub(crate) use row_error::{RowError, abbreviate, parse_currency, parse_symbol};
