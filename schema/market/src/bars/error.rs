//! Errors of reading and joining bar columns.

/// Error in reading or joining bar columns.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum BarsError {
    #[error("columns are damaged: {0}")]
    Damaged(&'static str),
    #[error("columns are damaged: {0}")]
    Codec(#[from] postcard::Error),
    #[error("cannot read packed bars of form {0}: a newer version wrote them; upgrade this program")]
    UnknownForm(u8),
    #[error("a price does not fit the scale of its neighbours")]
    ScaleOverflow,
}

impl BarsError {
    /// The columns do not have one value per day.
    pub(super) const LENGTHS: Self = Self::Damaged("columns differ in length");
    /// The number of bars exceeds 32 bits.
    pub(super) const TOO_MANY: Self = Self::Damaged("more than 2^32 bars");
}
