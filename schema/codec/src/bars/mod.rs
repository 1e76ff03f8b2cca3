//! Binary codec of price bars: one byte string per column. Days and prices are stored as differences from predicted
//! values, volumes and trade counts unchanged.
//!
//! Errors of packing and unpacking bars.

mod blocks;
mod packed;
mod sessions;
mod superseded;
#[cfg(test)]
mod tests;

use market::bars::BarsError;
pub use packed::{PackedBars, batches, pack_closes, unpack_closes};
pub use sessions::unpack_days;
pub use superseded::{pack_superseded, unpack_superseded};

/// Script that creates SQL functions for decoding prices. It must run in the schema of the table `prices`.
pub const UNPACK_SQL: &str = include_str!("unpack.sql");

/// Error of packing or unpacking price bars.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum PackedBarsError {
    #[error("columns are damaged: {0}")]
    Damaged(&'static str),
    #[error("columns are damaged: {0}")]
    Codec(#[from] postcard::Error),
    #[error("cannot read packed bars of version {0}: a newer version wrote them; upgrade this program")]
    UnknownVersion(u8),
    #[error(transparent)]
    Bars(#[from] BarsError),
}

impl PackedBarsError {
    /// Error for a column that does not have one value per day.
    const LENGTHS: Self = Self::Damaged("columns differ in length");
    /// Error for more than 2^32 bars.
    const TOO_MANY: Self = Self::Damaged("more than 2^32 bars");
}
