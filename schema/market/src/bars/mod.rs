//! Price bars as columns: the one shape they have in frames, in Postgres and in memory.
//!
//! A column is scaled integers, written as differences in blocks of as many bits as they need. Values are exact:
//! `value / 10^scale`. Every bar names its version, so that merging two sets of bars is a pure choice
//! bar by bar, in any order (the greater version wins).

mod blocks;
mod column;
mod columns;
mod day;
mod error;
#[cfg(test)]
mod examples;
mod merge;
mod packed;
mod sessions;
#[cfg(test)]
mod tests;
mod version;
mod years;

pub use column::{Column, MISSING};
pub use columns::{Bar, Bars, Closes};
pub(crate) use day::not_before;
pub use day::{date_of, day_number};
pub use error::BarsError;
pub use packed::{Packed, digest};
pub use sessions::unpack_days;
pub use version::{BarVersion, Dictionary};
