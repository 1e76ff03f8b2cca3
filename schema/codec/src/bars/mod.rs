//! Binary codec of price bars: one byte string per column.
//!
//! Each value is predicted from earlier values. Only its difference from the prediction is stored, in blocks of minimal
//! bit width.

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
