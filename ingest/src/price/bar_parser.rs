//! Parser of one bar. All prices of the bar get the same number of decimal places. The bar must satisfy rule R28.
//!
//! Fixed-point parser of price rows. It converts feed bytes to scaled integers without floats. Unusual notations take a
//! slower path through decimals.

use market::bars::{Bar, MISSING};
use market::decimal::{DecimalError, MAX_FRACTION_DIGITS, parse_decimal, parse_figure};
use market::metrics::merge::{PriceValues, price_fault};
use rust_decimal::Decimal;

use crate::normalize::{RowError, is_absent_value};

/// One value for each price column. The values may be the cells of a row, or the positions of the columns in a table.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct PriceFields<T> {
    pub(crate) open: T,
    pub(crate) high: T,
    pub(crate) low: T,
    pub(crate) close: T,
    pub(crate) volume: T,
    pub(crate) vwap: T,
    pub(crate) trade_count: T,
}

/// Cells of a price row as bytes. An empty cell is an absent value.
pub(crate) type PriceCells<'a> = PriceFields<&'a [u8]>;

impl<T> PriceFields<T> {
    /// Calls `value` for each price column, with its canonical name, and collects the results.
    #[inline]
    pub(crate) fn from_columns(mut value: impl FnMut(&'static str) -> T) -> Self {
        Self {
            open: value("open"),
            high: value("high"),
            low: value("low"),
            close: value("close"),
            volume: value("volume"),
            vwap: value("vwap"),
            trade_count: value("trade_count"),
        }
    }
}

/// Values of a bar. Prices are `value / 10^scale`; [`MISSING`] marks absent values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScaledBar {
    pub(crate) scale: u8,
    pub(crate) open: i64,
    pub(crate) high: i64,
    pub(crate) low: i64,
    pub(crate) close: i64,
    pub(crate) vwap: i64,
    pub(crate) volume: i64,
    pub(crate) trade_count: i64,
    /// Number of values whose excess fraction digits were rounded.
    pub(crate) rounded: u64,
}

const ABSENT: FixedPoint = FixedPoint { mantissa: MISSING, scale: 0, rounded: false };

impl ScaledBar {
    /// Bar of a retraction, without values.
    pub(crate) const VOID: Self = Self {
        scale: 0,
        open: MISSING,
        high: MISSING,
        low: MISSING,
        close: MISSING,
        vwap: MISSING,
        volume: MISSING,
        trade_count: MISSING,
        rounded: 0,
    };

    /// Parses and checks a bar.
    pub(crate) fn parse_cells(cells: &PriceCells<'_>) -> Result<Self, RowError> {
        let close = value("close", cells.close, parse_price)?;
        if close.mantissa == MISSING {
            return Err(RowError::missing_value("close"));
        }
        let open = zero_to_absent(value("open", cells.open, parse_price)?);
        let high = zero_to_absent(value("high", cells.high, parse_price)?);
        let low = zero_to_absent(value("low", cells.low, parse_price)?);
        let vwap = zero_to_absent(value("vwap", cells.vwap, parse_price)?);
        let volume = value("volume", cells.volume, parse_count)?;
        let trade_count = value("trade_count", cells.trade_count, parse_count)?;
        let scale = close.scale.max(open.scale).max(high.scale).max(low.scale).max(vwap.scale);
        let rounded =
            [open, high, low, close, vwap, volume, trade_count].iter().map(|v| u64::from(v.rounded)).sum();
        let bar = Self {
            scale,
            open: at_scale(open, scale)?,
            high: at_scale(high, scale)?,
            low: at_scale(low, scale)?,
            close: at_scale(close, scale)?,
            vwap: at_scale(vwap, scale)?,
            volume: volume.mantissa,
            trade_count: trade_count.mantissa,
            rounded,
        };
        bar.check()
    }

    /// Rejects an impossible bar, for example with a high below the low. A fast integer check accepts most valid bars.
    /// The domain rule checks all other bars and gives the error message.
    fn check(self) -> Result<Self, RowError> {
        let Self { open, high, low, close, vwap, volume, trade_count, .. } = self;
        let negative = |value: i64| value < 0 && value != MISSING;
        let inverted = high < low && high != MISSING;
        if close > 0 && !inverted && ![open, high, low, vwap, volume].into_iter().any(negative) {
            return Ok(self);
        }
        let bar = Bar { day: 0, open, high, low, close, volume, vwap, trade_count };
        let fault = price_fault(&PriceValues::from_bar(&bar, u32::from(self.scale)));
        fault.map_or(Ok(self), |fault| Err(RowError::from_rule(fault)))
    }
}

/// Converts a price of 0 to an absent value, because vendors write 0 for an unknown price.
fn zero_to_absent(price: FixedPoint) -> FixedPoint {
    if price.mantissa == 0 { ABSENT } else { price }
}

fn at_scale(price: FixedPoint, scale: u8) -> Result<i64, RowError> {
    if price.scale == scale || price.mantissa == MISSING {
        return Ok(price.mantissa);
    }
    price.mantissa.checked_mul(POW10[usize::from(scale - price.scale)]).ok_or_else(|| {
        let message =
            "the row's prices differ so much in size and digits that no common scale fits them: round them";
        RowError::new("number_too_large", message)
    })
}

#[inline]
fn value(
    column: &str,
    cell: &[u8],
    parse: fn(&[u8]) -> Result<FixedPoint, DecimalError>,
) -> Result<FixedPoint, RowError> {
    if cell.is_empty() {
        return Ok(ABSENT);
    }
    parse(cell).or_else(|_| value_slowly(column, cell.trim_ascii(), parse))
}

/// Parses a cell with surrounding blanks, or with a word for an absent value. [`value`] calls this function only if
/// `parse` cannot read the cell directly.
#[cold]
fn value_slowly(
    column: &str,
    cell: &[u8],
    parse: fn(&[u8]) -> Result<FixedPoint, DecimalError>,
) -> Result<FixedPoint, RowError> {
    if is_absent_value(cell) {
        return Ok(ABSENT);
    }
    parse(cell).map_err(|error| RowError::invalid_number(column, cell, error))
}

/// Powers of ten that fit an `i64`.
pub(crate) const POW10: [i64; 19] = {
    let mut powers = [1i64; 19];
    let mut index = 1;
    while index < 19 {
        powers[index] = powers[index - 1] * 10;
        index += 1;
    }
    powers
};

/// Number of fraction digits for a price that does not fit an `i64` with ten fraction digits. With eight fraction
/// digits, every price of up to ten integer digits fits.
pub(crate) const LARGE_PRICE_PLACES: u32 = 8;

/// Exact number: `mantissa / 10^scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FixedPoint {
    pub mantissa: i64,
    pub scale: u8,
    /// True if excess fraction digits were rounded.
    pub rounded: bool,
}

/// Parses a price with at most ten integer digits. Fraction digits beyond the tenth are rounded.
pub(crate) fn parse_price(bytes: &[u8]) -> Result<FixedPoint, DecimalError> {
    match parse_plain(bytes) {
        Some((mantissa, scale)) if scale <= 10 && fits_limit(mantissa, scale) => Ok(trimmed(mantissa, scale)),
        _ => parse_slowly(bytes),
    }
}

/// Parses a count, such as a volume. A fraction is rounded to the nearest integer.
pub(crate) fn parse_count(bytes: &[u8]) -> Result<FixedPoint, DecimalError> {
    if let Some((mantissa, 0)) = parse_plain(bytes) {
        return Ok(FixedPoint { mantissa, scale: 0, rounded: false });
    }
    let text = std::str::from_utf8(bytes).map_err(|_| DecimalError::Malformed)?;
    let parsed = parse_figure(text)?;
    let whole = market::decimal::round(parsed.value, 0);
    let mantissa = i64::try_from(whole.mantissa()).map_err(|_| DecimalError::TooLarge)?;
    Ok(FixedPoint { mantissa, scale: 0, rounded: parsed.rounded || whole != parsed.value })
}

/// Parses up to 18 digits with an optional minus sign and decimal point; `None` for any other text.
fn parse_plain(bytes: &[u8]) -> Option<(i64, u8)> {
    let (negative, digits) = match bytes.split_first()? {
        (b'-', rest) => (true, rest),
        _ => (false, bytes),
    };
    if digits.len() > 19 {
        return None;
    }
    let (mut mantissa, mut scale, mut digit_count, mut point) = (0i64, 0u8, 0u8, 0u8);
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(i64::from(digit));
            digit_count += 1;
            scale += point;
        } else if *byte == b'.' && point == 0 {
            point = 1;
        } else {
            return None;
        }
    }
    (1..=18).contains(&digit_count).then_some((if negative { -mantissa } else { mantissa }, scale))
}

/// True if the number has at most ten integer digits.
fn fits_limit(mantissa: i64, scale: u8) -> bool {
    const LIMIT: i64 = 10_000_000_000;
    mantissa.abs() < LIMIT || mantissa.abs() / POW10[usize::from(scale)] < LIMIT
}

/// Drops trailing zeros after the second fraction digit. They would lengthen the other prices of the series.
fn trimmed(mut mantissa: i64, mut scale: u8) -> FixedPoint {
    while scale > 2 && mantissa % 10 == 0 {
        (mantissa, scale) = (mantissa / 10, scale - 1);
    }
    FixedPoint { mantissa, scale, rounded: false }
}

fn parse_slowly(bytes: &[u8]) -> Result<FixedPoint, DecimalError> {
    let parsed = parse_decimal(std::str::from_utf8(bytes).map_err(|_| DecimalError::Malformed)?)?;
    let mut value = parsed.value;
    let mut rounded = parsed.rounded;
    if i64::try_from(mantissa_at(value, MAX_FRACTION_DIGITS)).is_err() {
        value = market::decimal::round(value, LARGE_PRICE_PLACES);
        rounded |= value != parsed.value;
    }
    let mantissa = i64::try_from(value.mantissa()).map_err(|_| DecimalError::TooLarge)?;
    let scale = u8::try_from(value.scale()).map_err(|_| DecimalError::TooLarge)?;
    Ok(FixedPoint { mantissa, scale, rounded })
}

fn mantissa_at(value: Decimal, scale: u32) -> i128 {
    value.mantissa() * 10i128.pow(scale.saturating_sub(value.scale()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn price(text: &str) -> Result<(i64, u8, bool), DecimalError> {
        parse_price(text.as_bytes()).map(|f| (f.mantissa, f.scale, f.rounded))
    }

    #[test]
    fn prices_are_read_digit_for_digit() {
        assert_eq!(price("170.52"), Ok((17052, 2, false)));
        assert_eq!(price("170.5000"), Ok((17050, 2, false)));
        assert_eq!(price("-1"), Ok((-1, 0, false)));
        assert_eq!(price("+1.5"), Ok((15, 1, false)));
        assert_eq!(price(".5"), Ok((5, 1, false)));
        assert_eq!(price("1e-3"), Ok((1, 3, false)));
        assert_eq!(price("2.8299999237060547"), Ok((28_299_999_237, 10, true)));
        assert_eq!(price("1000000000.1234567891"), Ok((100_000_000_012_345_679, 8, true)));
        assert_eq!(price("9999999999.99999999"), Ok((999_999_999_999_999_999, 8, false)));
    }

    #[test]
    fn what_is_no_price_is_refused() {
        for text in ["", "-", ".", "1,5", "NaN", "1.2.3", "0x10", "1 2"] {
            assert_eq!(price(text), Err(DecimalError::Malformed), "{text}");
        }
        assert_eq!(price("10000000000"), Err(DecimalError::TooLarge));
        assert_eq!(price("10000000000.12345"), Err(DecimalError::TooLarge));
    }

    #[test]
    fn volumes_are_integers_however_they_are_written() {
        let count = |text: &str| parse_count(text.as_bytes()).map(|f| (f.mantissa, f.rounded));
        assert_eq!(count("25643711.0"), Ok((25_643_711, false)));
        assert_eq!(count("1.5e6"), Ok((1_500_000, false)));
        assert_eq!(count("10.5"), Ok((11, true)));
        assert_eq!(count("123456789012345678"), Ok((123_456_789_012_345_678, false)));
        assert_eq!(count("many"), Err(DecimalError::Malformed));
    }

    proptest! {
        #[test]
        fn both_paths_agree(mantissa in -999_999_999_999_999_999i64..=999_999_999_999_999_999, scale in 8u32..=14) {
            let text = Decimal::new(mantissa, scale).to_string();
            let fast = parse_price(text.as_bytes()).unwrap();
            let slow = parse_decimal(&text).unwrap();
            prop_assert_eq!(Decimal::new(fast.mantissa, u32::from(fast.scale)), slow.value);
            prop_assert_eq!(fast.rounded, slow.rounded);
        }

        #[test]
        fn any_bytes_are_a_number_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = (parse_price(&bytes), parse_count(&bytes));
        }
    }
}
