//! Binary codec of price bars: one byte string per column. Days and prices are stored as differences from predicted
//! values, volumes and trade counts unchanged.

mod blocks;
mod packed;
mod sessions;
mod superseded;
#[cfg(test)]
mod tests;

pub use crate::error::PackedBarsError;
pub use packed::{PackedBars, batches, pack_closes, unpack_closes};
pub use sessions::unpack_days;
pub use superseded::{pack_superseded, unpack_superseded};

/// Script that creates SQL functions for decoding prices. It must run in the schema of the table `prices`.
pub const UNPACK_SQL: &str = include_str!("unpack.sql");
