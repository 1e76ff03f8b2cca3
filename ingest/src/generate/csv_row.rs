//! Formatting of CSV cells as bytes, without an allocation for each cell.

use chrono::{Datelike, NaiveDate};

#[inline]
pub(super) fn push_integer(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends positive cents as a price with two decimals.
#[inline]
pub(super) fn push_cents(out: &mut Vec<u8>, cents: i64) {
    let (whole, fraction) = (cents / 100, (cents % 100) as u8);
    push_integer(out, whole);
    out.extend_from_slice(&[b'.', b'0' + fraction / 10, b'0' + fraction % 10]);
}

/// Appends millionths as a decimal with two to six places.
pub(super) fn push_micros(out: &mut Vec<u8>, micros: i64) {
    if micros < 0 {
        out.push(b'-');
    }
    let magnitude = micros.unsigned_abs();
    push_integer(out, (magnitude / 1_000_000) as i64);
    out.push(b'.');
    let (mut fraction, mut places) = (magnitude % 1_000_000, 6);
    while places > 2 && fraction.is_multiple_of(10) {
        fraction /= 10;
        places -= 1;
    }
    let mut unit = 10u64.pow(places - 1);
    while unit > 0 {
        out.push(b'0' + (fraction / unit % 10) as u8);
        unit /= 10;
    }
}

/// Formats a date as `YYYY-MM-DD`.
pub(super) fn date_bytes(date: NaiveDate) -> [u8; 10] {
    let (year, month, day) = (date.year().unsigned_abs(), date.month(), date.day());
    let digit = |value: u32| b'0' + (value % 10) as u8;
    [
        digit(year / 1000),
        digit(year / 100),
        digit(year / 10),
        digit(year),
        b'-',
        digit(month / 10),
        digit(month),
        b'-',
        digit(day / 10),
        digit(day),
    ]
}

/// Writer of one row, cell by cell. Texts must contain neither commas nor quotes.
pub(super) struct CsvRow<'a> {
    out: &'a mut Vec<u8>,
    started: bool,
}

impl<'a> CsvRow<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, started: false }
    }

    fn cell(&mut self) -> &mut Vec<u8> {
        if std::mem::replace(&mut self.started, true) {
            self.out.push(b',');
        }
        self.out
    }

    pub(super) fn text(mut self, text: &str) -> Self {
        self.cell().extend_from_slice(text.as_bytes());
        self
    }

    pub(super) fn integer(mut self, value: impl Into<Option<i64>>) -> Self {
        let out = self.cell();
        if let Some(value) = value.into() {
            push_integer(out, value);
        }
        self
    }

    /// Appends millionths as a decimal.
    pub(super) fn micros(mut self, value: impl Into<Option<i64>>) -> Self {
        let out = self.cell();
        if let Some(value) = value.into() {
            push_micros(out, value);
        }
        self
    }

    pub(super) fn date(mut self, date: impl Into<Option<NaiveDate>>) -> Self {
        let out = self.cell();
        if let Some(date) = date.into() {
            out.extend_from_slice(&date_bytes(date));
        }
        self
    }

    pub(super) fn end(self) {
        self.out.push(b'\n');
    }
}
