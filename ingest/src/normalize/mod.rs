//! Normalization of feed values: dates, numbers, currencies, symbols, and rules for a single row. All functions are
//! pure. Invalid values give a [`RowError`] with a stable reason code.

mod date;
mod record_cells;
mod row_error;
#[cfg(test)]
mod tests;

pub(crate) use date::{
    ExchangeZone, UtcTimeInterpretation, from_unix_seconds, interpret_utc_times, parse_date,
    parse_session_date, parse_time, parse_utc_time,
};
pub(crate) use record_cells::RecordCells;
pub(crate) use row_error::{
    RowError, abbreviate, is_absent_value, parse_currency, parse_symbol, parse_web_address,
};
