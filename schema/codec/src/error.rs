//! Errors of packing and unpacking bars and records.

use market::bars::BarsError;

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
