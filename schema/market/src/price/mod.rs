//! Prices in responses. They are computed on request from columns of raw bars: adjusted, and grouped into periods (R10,
//! R11).
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
