//! Writer of single values as JSON or CSV bytes.

use chrono::Datelike;
use rust_decimal::Decimal;

use super::digits::{write_date, write_integer, write_scaled, write_trimmed_fraction};
use super::multiplier::Micros;
use crate::day::date_of;

/// Format of price rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriceFormat {
    /// Comma-separated JSON objects.
    Json {
        /// True if decimals are strings.
        text_decimals: bool,
    },
    /// CSV records.
    Csv,
}

/// Output buffer for JSON or CSV.
#[derive(Debug)]
pub(super) struct ValueWriter<'a> {
    pub(super) out: &'a mut Vec<u8>,
    /// Quotation mark around decimals, if they are JSON strings; `None` for JSON numbers and CSV.
    pub(super) quote: Option<u8>,
    pub(super) is_csv: bool,
}

impl<'a> ValueWriter<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>, format: PriceFormat) -> Self {
        let quote = (format == PriceFormat::Json { text_decimals: true }).then_some(b'"');
        Self { out, quote, is_csv: format == PriceFormat::Csv }
    }

    /// Ends a CSV record that begins at the position `start`. A record of one empty cell is written as `""`, because
    /// readers skip empty lines.
    pub(super) fn end_record(&mut self, start: usize) {
        if self.out.len() == start {
            self.out.extend_from_slice(b"\"\"");
        }
        self.out.extend_from_slice(b"\r\n");
    }

    /// Writes a ticker or currency code. Its characters need no escape.
    pub(super) fn write_code(&mut self, value: Option<&str>) {
        let Some(value) = value else { return self.write_missing() };
        let quote = (!self.is_csv).then_some(b'"');
        self.out.extend(quote);
        self.out.extend_from_slice(value.as_bytes());
        self.out.extend(quote);
    }

    /// Writes a missing value: `null` in JSON, an empty cell in CSV.
    pub(super) fn write_missing(&mut self) {
        if !self.is_csv {
            self.out.extend_from_slice(b"null");
        }
    }

    /// Writes a price, given in millionths of the currency unit.
    pub(super) fn write_price(&mut self, value: Option<Micros>) {
        match value {
            Some(value) => self.write_scaled::<6>(value),
            None => self.write_missing(),
        }
    }

    /// Writes `value / 10^PLACES` as a decimal without trailing zeros.
    pub(super) fn write_scaled<const PLACES: u32>(&mut self, value: i128) {
        self.out.extend(self.quote);
        if value < 0 {
            self.out.push(b'-');
        }
        let magnitude = value.unsigned_abs();
        match u64::try_from(magnitude) {
            Ok(magnitude) => write_scaled::<PLACES>(self.out, magnitude),
            Err(_) => {
                let unit = const { 10u128.pow(PLACES) };
                self.out.extend_from_slice((magnitude / unit).to_string().as_bytes());
                #[expect(clippy::cast_possible_truncation, reason = "the fraction has `PLACES` digits")]
                write_trimmed_fraction::<PLACES>(self.out, (magnitude % unit) as u64);
            }
        }
        self.out.extend(self.quote);
    }

    /// Writes an integer.
    pub(super) fn write_count(&mut self, value: Option<i64>) {
        match value {
            Some(value) => {
                if value < 0 {
                    self.out.push(b'-');
                }
                write_integer(self.out, value.unsigned_abs());
            }
            None => self.write_missing(),
        }
    }

    /// Writes a decimal without trailing zeros.
    pub(super) fn write_decimal(&mut self, value: Option<Decimal>) {
        match value {
            Some(value) => {
                self.write_decimal_text(&value.normalize().to_string());
            }
            None => self.write_missing(),
        }
    }

    /// Writes the date with this day number, as `YYYY-MM-DD`.
    pub(super) fn write_date(&mut self, day: i32) {
        let date = date_of(day);
        let quote = (!self.is_csv).then_some(b'"');
        self.out.extend(quote);
        write_date(self.out, date.year().unsigned_abs() % 10_000, date.month(), date.day());
        self.out.extend(quote);
    }

    /// Writes a decimal, given as text.
    pub(super) fn write_decimal_text(&mut self, digits: &str) {
        self.out.extend(self.quote);
        self.out.extend_from_slice(digits.as_bytes());
        self.out.extend(self.quote);
    }
}
