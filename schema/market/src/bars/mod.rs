//! Columnar price bars, with merge and binary codec. Record batches, Postgres and memory use the same form.
//!
//! A column contains scaled integers (`value / 10^scale`, exact), stored as differences in blocks of minimal
//! bit width. Every bar has a version, and the greater version wins a merge, so merges are independent of
//! order.

mod blocks;
mod column;
mod columns;
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

pub use column::{BarColumn, MISSING};
pub use columns::{Bar, Bars, CloseColumns};
pub use error::BarsError;
pub use packed::{PackedBars, digest};
pub use sessions::unpack_days;
pub use version::{BarVersion, VersionDictionary};
