//! Errors of packed records.

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
