//! Values as the bytes of JSON or CSV.

use chrono::Datelike;
use market::day::date_of;
use market::price::Micros;
use rust_decimal::Decimal;

use super::digits::{write_digits, write_fraction, write_integer};

/// The bytes written so far, and how values stand in them.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) out: Vec<u8>,
    /// What stands around a decimal.
    pub(super) quote: Option<u8>,
    pub(super) is_csv: bool,
}

impl Text {
    /// A ticker or a currency code: letters, digits and points, which need no escape.
    pub(super) fn word(&mut self, value: Option<&str>) {
        let Some(value) = value else { return self.nothing() };
        let quote = (!self.is_csv).then_some(b'"');
        self.out.extend(quote);
        self.out.extend_from_slice(value.as_bytes());
        self.out.extend(quote);
    }

    /// The absence of a value: `null`, or an empty cell.
    pub(super) fn nothing(&mut self) {
        if !self.is_csv {
            self.out.extend_from_slice(b"null");
        }
    }

    /// A price in millionths.
    pub(super) fn price(&mut self, value: Option<Micros>) {
        match value {
            Some(value) => self.scaled(value, 6),
            None => self.nothing(),
        }
    }

    /// An integer with this many decimal places, trailing zeros cut.
    pub(super) fn scaled(&mut self, value: i128, places: u32) {
        self.out.extend(self.quote);
        if value < 0 {
            self.out.push(b'-');
        }
        let (unit, magnitude) = (10u64.pow(places), value.unsigned_abs());
        match u64::try_from(magnitude) {
            Ok(magnitude) => {
                write_integer(&mut self.out, magnitude / unit);
                write_fraction(&mut self.out, magnitude % unit, places);
            }
            Err(_) => {
                let (whole, fraction) = (magnitude / u128::from(unit), magnitude % u128::from(unit));
                self.out.extend_from_slice(whole.to_string().as_bytes());
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "a remainder is less than its 64-bit divisor"
                )]
                write_fraction(&mut self.out, fraction as u64, places);
            }
        }
        self.out.extend(self.quote);
    }

    /// A whole number.
    pub(super) fn count(&mut self, value: Option<i64>) {
        match value {
            Some(value) => {
                if value < 0 {
                    self.out.push(b'-');
                }
                write_integer(&mut self.out, value.unsigned_abs());
            }
            None => self.nothing(),
        }
    }

    /// A decimal, trailing zeros cut.
    pub(super) fn decimal(&mut self, value: Option<Decimal>) {
        match value {
            Some(value) => {
                self.digits(&value.normalize().to_string());
            }
            None => self.nothing(),
        }
    }

    /// The date of a day number.
    pub(super) fn date(&mut self, day: i32) {
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

    /// A decimal's digits.
    pub(super) fn digits(&mut self, digits: &str) {
        self.out.extend(self.quote);
        self.out.extend_from_slice(digits.as_bytes());
        self.out.extend(self.quote);
    }
}
