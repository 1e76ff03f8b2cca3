//! Prices in responses. On each request, raw bars are adjusted and grouped into periods such as weeks (R10, R11), and
//! written as JSON or CSV.
//!
//! Invariant: raw prices are never changed; every adjusted price is computed from raw prices and rounded once.

mod adjusted_bars;
mod cumulative;
mod encoder;
mod multiplier;
mod point_values;
#[cfg(test)]
mod tests;
mod value_writer;

pub use adjusted_bars::{AdjustedBars, Interval, RawBars, SessionRange};
pub use cumulative::{CumulativeFactor, CumulativeFactors, PriceBasis};
pub use encoder::{PriceColumn, PriceEncoder, RowLabels};
pub use multiplier::{Micros, PriceMultiplier, micros};
pub use point_values::PricePoint;
pub use value_writer::PriceFormat;
