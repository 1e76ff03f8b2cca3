//! What is wrong with a request's parameters.

use serde_json::Value;

/// One wrong parameter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParameterError {
    /// Name of the parameter.
    pub(crate) param: String,
    /// What is wrong, for people.
    pub(crate) error: String,
    /// What it may be: a list of words, or bounds.
    pub(crate) allowed: Option<Value>,
}

/// Everything that is wrong with a request's parameters.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum Mistakes {
    #[error("invalid parameter")]
    Parameters(Vec<ParameterError>),
    #[error("the cursor is not one of this request's")]
    Cursor,
}
