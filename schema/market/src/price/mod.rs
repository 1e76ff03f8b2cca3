//! Prices in responses. On each request, raw bars are adjusted and grouped into periods such as weeks (R10, R11).
//!
//! Invariant: raw prices are never changed; every adjusted price is computed from raw prices and rounded once.

mod cumulative;
mod point;

pub use cumulative::{CumulativeFactor, CumulativeFactors, PriceBasis};
pub use cumulative::{Micros, PriceMultiplier, micros};
pub use point::RawBars;
pub use point::{AdjustedBars, PricePoint};
pub use point::{Interval, SessionRange};
