//! Media types of responses.

/// Media type of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum ResponseFormat {
    #[default]
    Json,
    Csv,
}
