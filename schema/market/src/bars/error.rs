//! Why columns of bars are refused.

/// Why columns could not be read or joined.
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
    /// A column has more or fewer values than there are days.
    pub(super) const LENGTHS: Self = Self::Damaged("columns differ in length");
    /// There are more bars than their count can say.
    pub(super) const TOO_MANY: Self = Self::Damaged("more than 2^32 bars");
}
