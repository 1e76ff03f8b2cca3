//! `/income`: expected income of the holdings that a reader enters.

mod cells;
pub(crate) mod page;
mod portfolio_text;
mod result;

pub(crate) use portfolio_text::read_holdings;
