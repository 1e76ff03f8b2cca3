//! Record sets, and the format in which they are stored. A set contains the observations (feed rows) of one symbol,
//! kind and source. Merging does not depend on order, duplicates or batches.
//!
//! Errors of packed records.

mod encoded;
mod field;
mod history;
mod layout;
mod packed;
mod set;
#[cfg(test)]
mod tests;

pub use encoded::{EncodedField, EncodedRecord, FieldReader, FieldWriter, RecordLayout};
pub use field::Field;
pub use history::add_to_history;
pub use packed::RawObservation;
pub use packed::{batches, read};
pub use set::RecordSet;

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
