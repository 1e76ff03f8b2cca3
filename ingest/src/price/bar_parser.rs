//! Parser of one bar. All prices of the bar get the same number of decimal places. The bar must satisfy rule R28.

use market::bars::{Bar, MISSING};
use market::decimal::DecimalError;
use market::metrics::merge::{PriceValues, price_fault};

use crate::normalize::{RowError, is_absent_value};
use crate::price::fixed_point::{FixedPoint, POW10, parse_count, parse_price};

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
