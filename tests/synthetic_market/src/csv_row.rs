//! Formatting of CSV cells as bytes. The cells of price rows are formatted without an allocation.

use chrono::NaiveDate;

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

/// Appends a number of millionths as a decimal with two to six places: 1500000 gives `1.50`.
pub(super) fn push_micros(out: &mut Vec<u8>, micros: i64) {
    if micros < 0 {
        out.push(b'-');
    }
    let magnitude = micros.unsigned_abs();
    push_integer(out, (magnitude / 1_000_000) as i64);
    out.push(b'.');
    let fraction = format!("{:06}", magnitude % 1_000_000);
    let places = fraction.trim_end_matches('0').len().max(2);
    out.extend_from_slice(&fraction.as_bytes()[..places]);
}

/// Formats a date of the years 0 to 9999 as `YYYY-MM-DD`.
pub(super) fn date_bytes(date: NaiveDate) -> [u8; 10] {
    let mut cell = [0; 10];
    cell.copy_from_slice(date.to_string().as_bytes());
    cell
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

    /// Appends a cell with the value; an empty cell for `None`.
    fn optional<T>(mut self, value: impl Into<Option<T>>, push: impl FnOnce(&mut Vec<u8>, T)) -> Self {
        let out = self.cell();
        if let Some(value) = value.into() {
            push(out, value);
        }
        self
    }

    pub(super) fn integer(self, value: impl Into<Option<i64>>) -> Self {
        self.optional(value, push_integer)
    }

    /// Appends millionths as a decimal.
    pub(super) fn micros(self, value: impl Into<Option<i64>>) -> Self {
        self.optional(value, push_micros)
    }

    pub(super) fn date(self, date: impl Into<Option<NaiveDate>>) -> Self {
        self.optional(date, |out, date| out.extend_from_slice(&date_bytes(date)))
    }

    pub(super) fn end(self) {
        self.out.push(b'\n');
    }
}
