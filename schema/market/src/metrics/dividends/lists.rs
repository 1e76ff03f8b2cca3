//! Dividend lists: the default thresholds of the screeners, and the lists that contain a security.
//!
//! A list contains only securities that still trade. The high-yield list follows R18, Aristocrats and Kings follow R15.
//! This service chose the two thresholds of the dividend-growth list.

use rust_decimal::Decimal;

use super::safety::{HIGH_YIELD_MINIMUM, HighYieldScreenInput};
use crate::row::{StockFigures, StockRow};
use crate::text_enum;

/// Default minimum of the five-year growth in the dividend-growth list, percent a year.
pub const GROWTH_MINIMUM: i64 = 10;
/// Default minimum of the headline yield in the dividend-growth list, percent.
pub const GROWTH_YIELD_MINIMUM: i64 = 2;

text_enum! {
    /// Dividend list. It contains the securities that the screener of the same name finds without further filters.
    pub enum DividendList {
        HighYield = "high-yield", DividendGrowth = "dividend-growth", Aristocrats = "dividend-aristocrats",
        Kings = "dividend-kings",
    }
}

impl DividendList {
    /// True if the list contains the security.
    pub fn contains(self, stock: &StockRow, figures: &StockFigures) -> bool {
        let at_least = |value: Option<Decimal>, least: i64| value.is_some_and(|value| value >= least.into());
        stock.is_active
            && match self {
                Self::HighYield => {
                    let screened = HighYieldScreenInput::from_rows(stock, figures);
                    screened.passes(Some(HIGH_YIELD_MINIMUM.into()), None)
                }
                Self::DividendGrowth => {
                    let growth = figures.screened.growth_5y.map(|value| value.0);
                    at_least(growth, GROWTH_MINIMUM)
                        && at_least(stock.dividend_yield.map(|value| value.0), GROWTH_YIELD_MINIMUM)
                }
                Self::Aristocrats => figures.screened.is_dividend_aristocrat,
                Self::Kings => figures.screened.is_dividend_king,
            }
    }
}

/// Lists that contain the security, in the order of [`DividendList::ALL`].
pub fn lists_of(stock: &StockRow, figures: &StockFigures) -> impl Iterator<Item = DividendList> {
    DividendList::ALL.iter().copied().filter(|list| list.contains(stock, figures))
}
