//! Prices in responses. On each request, raw bars are adjusted and grouped into periods such as weeks (R10, R11).
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
