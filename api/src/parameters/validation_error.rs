//! Validation errors of parameters.

use serde_json::{Value, json};

use crate::parameters::facets::UnknownFacet;

/// Error of one parameter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParameterError {
    /// Name of the parameter.
    pub(crate) param: String,
    /// Human-readable message.
    pub(crate) error: String,
    /// Accepted values: a list of words, or bounds; `None` if the error has neither.
    pub(crate) allowed: Option<Value>,
}

impl ParameterError {
    /// Error for an unknown filter value.
    pub(crate) fn unknown_value(param: &str, UnknownFacet { word, nearest }: UnknownFacet) -> Self {
        let error = format!(
            "has the unknown value {:?}; known are: {}",
            truncate_for_message(&word),
            nearest.join(", ")
        );
        Self { param: param.to_owned(), error, allowed: Some(json!(nearest)) }
    }
}

/// Truncates text from the client, so that error messages stay short.
pub(super) fn truncate_for_message(text: &str) -> String {
    text.chars().take(64).collect()
}

/// Errors of a request's parameters.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum ParameterErrors {
    #[error("invalid parameter")]
    Parameters(Vec<ParameterError>),
    #[error("the cursor belongs to another request or is damaged")]
    Cursor,
}
