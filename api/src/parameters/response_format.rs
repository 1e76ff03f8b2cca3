//! Response format: JSON or CSV.

/// Format of a response: JSON or CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum ResponseFormat {
    #[default]
    Json,
    Csv,
}
