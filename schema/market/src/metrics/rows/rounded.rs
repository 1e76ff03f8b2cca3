//! Rounding of optional figures for output.

use rust_decimal::Decimal;

use crate::decimal::ExactDecimal;
use crate::metrics::arithmetic;

/// Percent or ratio, 4 places.
pub(crate) fn percent(value: Option<Decimal>) -> Option<ExactDecimal> {
    value.map(arithmetic::percent)
}

/// Amount per share, 6 places.
pub(crate) fn amount(value: Option<Decimal>) -> Option<ExactDecimal> {
    value.map(arithmetic::amount)
}
