//! Prices in responses: raw bars as columns, which are adjusted and grouped into periods on request (R10, R11).
//!
//! Invariant: raw prices are never changed; every adjusted price is computed from raw prices and rounded once.

mod cumulative;
mod multiplier;
mod period;
mod point;
mod raw;

pub use cumulative::{CumulativeFactor, CumulativeFactors, PriceBasis};
pub use multiplier::{Micros, PriceMultiplier, micros};
pub use period::{Interval, SessionRange};
pub use point::{AdjustedBars, PricePoint};
pub use raw::RawBars;
