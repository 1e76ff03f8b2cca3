//! Writer of single values as JSON or CSV bytes.

use chrono::Datelike;
use market::day::date_of;
use market::price::Micros;
use rust_decimal::Decimal;

use super::digits::{write_digits, write_integer, write_trimmed_fraction};

/// Output buffer, and the form of its values.
#[derive(Debug)]
pub(super) struct ValueWriter {
    pub(super) out: Vec<u8>,
    /// Quotation mark around decimals, if they are JSON strings; `None` for JSON numbers and CSV.
    pub(super) quote: Option<u8>,
    pub(super) is_csv: bool,
}

impl ValueWriter {
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

    /// Writes a price in millionths.
    pub(super) fn write_price(&mut self, value: Option<Micros>) {
        match value {
            Some(value) => self.write_scaled(value, 6),
            None => self.write_missing(),
        }
    }

    /// Writes an integer as a decimal with `places` decimal places, without trailing zeros.
    pub(super) fn write_scaled(&mut self, value: i128, places: u32) {
        self.out.extend(self.quote);
        if value < 0 {
            self.out.push(b'-');
        }
        let (unit, magnitude) = (10u64.pow(places), value.unsigned_abs());
        match u64::try_from(magnitude) {
            Ok(magnitude) => {
                write_integer(&mut self.out, magnitude / unit);
                write_trimmed_fraction(&mut self.out, magnitude % unit, places);
            }
            Err(_) => {
                let (whole, fraction) = (magnitude / u128::from(unit), magnitude % u128::from(unit));
                self.out.extend_from_slice(whole.to_string().as_bytes());
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "a remainder is less than its 64-bit divisor"
                )]
                write_trimmed_fraction(&mut self.out, fraction as u64, places);
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
                write_integer(&mut self.out, value.unsigned_abs());
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

    /// Writes the date of a day number.
    pub(super) fn write_date(&mut self, day: i32) {
        let date = date_of(day);
        let year = u64::from(date.year().unsigned_abs());
        self.out.extend((!self.is_csv).then_some(b'"'));
        write_digits(&mut self.out, year, 4);
        self.out.push(b'-');
        write_digits(&mut self.out, date.month().into(), 2);
        self.out.push(b'-');
        write_digits(&mut self.out, date.day().into(), 2);
        self.out.extend((!self.is_csv).then_some(b'"'));
    }

    /// Writes the digits of a decimal.
    pub(super) fn write_decimal_text(&mut self, digits: &str) {
        self.out.extend(self.quote);
        self.out.extend_from_slice(digits.as_bytes());
        self.out.extend(self.quote);
    }
}
