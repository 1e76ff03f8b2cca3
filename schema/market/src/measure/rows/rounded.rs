//! Figures as they are served: absent or rounded.

use rust_decimal::Decimal;

use crate::measure::arithmetic;
use crate::value::Exact;

/// A figure in percent points, 4 places.
pub(super) fn percent(value: Option<Decimal>) -> Option<Exact> {
    value.map(arithmetic::percent)
}

/// An amount a share, 6 places.
pub(super) fn amount(value: Option<Decimal>) -> Option<Exact> {
    value.map(arithmetic::amount)
}
