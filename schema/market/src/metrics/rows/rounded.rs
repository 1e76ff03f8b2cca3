//! Rounding of figures that may be unknown, for output.

use rust_decimal::Decimal;

use crate::decimal::ExactDecimal;
use crate::metrics::arithmetic;

/// Rounds a percent or ratio to 4 decimal places.
pub(crate) fn percent(value: Option<Decimal>) -> Option<ExactDecimal> {
    value.map(arithmetic::percent)
}

/// Rounds an amount per share to 6 decimal places.
pub(crate) fn amount(value: Option<Decimal>) -> Option<ExactDecimal> {
    value.map(arithmetic::amount)
}
