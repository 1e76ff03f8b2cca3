//! Writer of single values as JSON or CSV bytes.
//!
//! Conversion of integers to decimal digits, eight at a time.
//!
//! Each of the eight digits is one byte of a 64-bit integer. One arithmetic operation on this integer therefore works
//! on all eight digits.

use chrono::Datelike;
use rust_decimal::Decimal;

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

/// Smallest integer with more than eight digits.
const EIGHT_DIGITS: u64 = 100_000_000;
const ASCII_ZEROS: u64 = 0x3030_3030_3030_3030;

/// Quotient `a / b`, rounded half away from zero.
pub(super) fn divide_rounded(a: i128, b: i128) -> i128 {
    let (magnitude, divisor) = (a.unsigned_abs(), b.unsigned_abs());
    let rounded = match (u64::try_from(magnitude), u64::try_from(divisor)) {
        // Most numbers fit into 64 bits. Division of 64-bit integers is ten times faster.
        (Ok(magnitude), Ok(divisor)) => {
            u128::from(magnitude / divisor + u64::from(magnitude % divisor >= divisor.div_ceil(2)))
        }
        _ => magnitude / divisor + u128::from(magnitude % divisor >= divisor.div_ceil(2)),
    };
    // Only i128::MIN / -1 would overflow, and prices never reach it.
    let rounded = rounded.cast_signed();
    if (a < 0) == (b < 0) { rounded } else { -rounded }
}

/// Writes an integer without leading zeros.
pub(super) fn write_integer(out: &mut Vec<u8>, value: u64) {
    if value < EIGHT_DIGITS {
        let (text, length) = integer_text(value);
        write_first(out, text.into(), length);
    } else {
        out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    }
}

/// Writes `value / 10^PLACES` as a decimal without trailing zeros. `PLACES` is at most seven.
pub(super) fn write_scaled<const PLACES: u32>(out: &mut Vec<u8>, value: u64) {
    let unit = const { 10u64.pow(PLACES) };
    let (whole, fraction) = (value / unit, value % unit);
    if whole >= EIGHT_DIGITS {
        write_integer(out, whole);
        return write_trimmed_fraction::<PLACES>(out, fraction);
    }
    // Up to eight digits, the point and up to seven digits fit into the 16 bytes of a 128-bit integer.
    let (whole, length) = integer_text(whole);
    let (fraction, places) = fraction_text::<PLACES>(fraction);
    let text = u128::from(whole) | (u128::from(fraction) << 8 | u128::from(b'.')) << (8 * length);
    write_first(out, text, if places == 0 { length } else { length + 1 + places });
}

/// Writes the decimal point and the `PLACES` digits of a fraction, without trailing zeros. Writes nothing if the
/// fraction is 0. `PLACES` is at most seven.
pub(super) fn write_trimmed_fraction<const PLACES: u32>(out: &mut Vec<u8>, fraction: u64) {
    let (text, places) = fraction_text::<PLACES>(fraction);
    if places > 0 {
        write_first(out, u128::from(text) << 8 | u128::from(b'.'), places + 1);
    }
}

/// ASCII digits of an integer below [`EIGHT_DIGITS`] without leading zeros, and the number of digits. The first digit
/// is in the lowest byte.
fn integer_text(value: u64) -> (u64, u32) {
    let digits = eight_digits(value);
    let zeros = (digits.trailing_zeros() / 8).min(7);
    ((digits | ASCII_ZEROS) >> (8 * zeros), 8 - zeros)
}

/// ASCII digits of a fraction with `PLACES` digits, and the number of digits that remain without trailing zeros. The
/// first digit is in the lowest byte.
fn fraction_text<const PLACES: u32>(fraction: u64) -> (u64, u32) {
    let digits = eight_digits(fraction * const { 10u64.pow(8 - PLACES) });
    (digits | ASCII_ZEROS, 8 - digits.leading_zeros() / 8)
}

/// Writes a date as `YYYY-MM-DD`. The year has at most four digits.
pub(super) fn write_date(out: &mut Vec<u8>, year: u32, month: u32, day: u32) {
    let digits = eight_digits(u64::from(year) * 10_000 + u64::from(month) * 100 + u64::from(day));
    let [a, b, c, d, e, f, g, h] = (digits | ASCII_ZEROS).to_le_bytes();
    out.extend_from_slice(&[a, b, c, d, b'-', e, f, b'-', g, h]);
}

/// Writes the first `count` bytes of `text`. All 16 bytes are copied, and the rest is cut off, because a copy of
/// constant size is fast.
fn write_first(out: &mut Vec<u8>, text: u128, count: u32) {
    let end = out.len() + count as usize;
    out.extend_from_slice(&text.to_le_bytes());
    out.truncate(end);
}

/// Digits of a value below [`EIGHT_DIGITS`], one per byte. The first digit is the lowest byte.
fn eight_digits(value: u64) -> u64 {
    debug_assert!(value < EIGHT_DIGITS, "{value} has more than eight digits");
    // The value is split into two numbers of four digits, then four of two digits, then eight digits. Each division by
    // 100 or 10 is computed as a product and a shift.
    let fours = (value / 10_000) | ((value % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | ((fours - hundreds * 100) << 16);
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((twos - tens * 10) << 8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn all_numbers_of_four_digits_are_converted() {
        for value in 0..10_000u64 {
            let text = format!("{value:04}{:04}", 9_999 - value);
            let digits = eight_digits(value * 10_000 + 9_999 - value);
            assert_eq!((digits | ASCII_ZEROS).to_le_bytes(), text.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn integers_equal_the_standard_library(value: u64, shift in 0u32..64) {
            let (value, mut out) = (value >> shift, b"a".to_vec());
            write_integer(&mut out, value);
            prop_assert_eq!(String::from_utf8_lossy(&out), format!("a{value}"));
        }

        #[test]
        fn quotients_are_rounded_half_away_from_zero(a in -10_000i128..10_000, b in -100i128..100, wide: bool) {
            prop_assume!(b != 0);
            let factor = if wide { 1i128 << 70 } else { 1 };
            let twice = a * 2 / b;
            let expected = (twice + twice.signum()) / 2;
            prop_assert_eq!(divide_rounded(a * factor, b * factor), expected);
        }
    }
}
