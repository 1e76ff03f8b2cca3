//! Binary formats in which Postgres tables store price bars and record sets. The log stores price bars in the same
//! format.
//!
//! Invariant: equal values have equal bytes. Two stored values can therefore be compared without decoding them.

use market::bars::BarsError;

/// Binary codec of price bars: one byte string per column. Days and prices are stored as differences from predicted
/// values, volumes and trade counts unchanged.
pub mod bars {
    mod blocks;
    mod packed;
    mod sessions;
    mod superseded;
    #[cfg(test)]
    mod tests;

    pub use super::PackedBarsError;
    pub use packed::{PackedBars, batches, pack_closes, unpack_closes};
    pub use sessions::unpack_days;
    pub use superseded::{pack_superseded, unpack_superseded};

    /// Script that creates SQL functions for decoding prices. It must run in the schema of the table `prices`.
    pub const UNPACK_SQL: &str = include_str!("bars/unpack.sql");
}

/// Record sets, and the format in which they are stored. A set contains the observations (feed rows) of one symbol, kind
/// and source. Merging does not depend on order, duplicates or batches.
pub mod records {
    mod encoded;
    mod field;
    mod packed;
    mod set;
    #[cfg(test)]
    mod tests;

    pub use super::PackedRecordsError;
    pub use encoded::{EncodedField, EncodedRecord, FieldReader, FieldWriter, RecordLayout};
    pub use field::Field;
    pub use packed::{add_to_history, batches, currencies, read};
    pub use set::{RawObservation, RecordSet};
}

/// 64-bit digest of a list of byte strings. It also depends on the boundaries between the strings: `(ab, c)` and
/// `(a, bc)` have different digests.
pub fn digest<const N: usize>(parts: [&[u8]; N]) -> i64 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    i64::from_le_bytes(bytes)
}

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
    pub(crate) const LENGTHS: Self = Self::Damaged("columns differ in length");
    /// Error for more than 2^32 bars.
    pub(crate) const TOO_MANY: Self = Self::Damaged("more than 2^32 bars");
}

/// Error of packing or unpacking records.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum PackedRecordsError {
    #[error("cannot read packed records of version {0}: a newer version wrote them; upgrade this program")]
    UnknownVersion(u8),
    #[error(
        "cannot read packed records: a newer version wrote a field that this program lacks; upgrade this program"
    )]
    UnknownField,
    #[error("packed records are damaged: {0}")]
    Damaged(&'static str),
    #[error("packed records are damaged: {0}")]
    Codec(#[from] postcard::Error),
    #[error("a text holds the character U+0000, which Postgres cannot store")]
    NulCharacter,
}
