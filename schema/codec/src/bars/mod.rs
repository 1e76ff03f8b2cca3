//! Binary codec of price bars: one byte string per column.
//!
//! A day or price is predicted from other values of the bars, for example a close from the previous close. Only the
//! difference from the prediction is stored. Volumes and trade counts are stored as they are. All these integers are
//! stored in blocks of minimal bit width.

mod blocks;
mod error;
mod packed;
mod sessions;
#[cfg(test)]
mod tests;

pub use error::PackedBarsError;
pub use packed::{PackedBars, batches, pack_closes, unpack_closes};
pub use sessions::unpack_days;

/// Script that creates SQL functions for decoding prices. It must run in the schema of the table `prices`.
pub const UNPACK_SQL: &str = include_str!("unpack.sql");
