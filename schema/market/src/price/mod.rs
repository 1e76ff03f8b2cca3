//! What price answers are made of: raw bars as columns, adjusted and grouped into periods as asked (R10, R11).
//!
//! Invariant: raw prices are never changed; every adjusted one is computed from them and rounded once.

mod cumulative;
mod period;
mod point;
mod raw;

pub use cumulative::{Basis, CumulativeFactor, CumulativeFactors, Micros, Multiplier, micros};
pub use period::{Interval, Period};
pub use point::{Adjusted, PricePoint};
pub use raw::RawBars;
