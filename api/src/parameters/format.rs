//! The media types an answer comes in.

/// Media type of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Format {
    #[default]
    Json,
    Csv,
}
