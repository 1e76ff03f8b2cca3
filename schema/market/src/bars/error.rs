//! Error of merging, appending or rescaling bars.

/// Error of merging, appending or rescaling bars.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum BarsError {
    #[error("bars have more than 65,536 versions")]
    TooManyVersions,
    #[error("a price does not fit the scale of its neighbours")]
    ScaleOverflow,
    #[error("a bar repeats a bar that does not exist")]
    NoOriginal,
}
