//! Validation errors of parameters.

use serde_json::{Value, json};

use crate::parameters::facets::Unknown;

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

impl ParameterError {
    /// A value of a filter that names nothing.
    pub(crate) fn unknown(param: &str, Unknown { word, nearest }: Unknown) -> Self {
        let error =
            format!("has the unknown value {:?}; known are: {}", shortened(&word), nearest.join(", "));
        Self { param: param.to_owned(), error, allowed: Some(json!(nearest)) }
    }
}

/// A text from the client, cut so that messages stay short.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}

/// Everything that is wrong with a request's parameters.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum Mistakes {
    #[error("invalid parameter")]
    Parameters(Vec<ParameterError>),
    #[error("the cursor is not one of this request's")]
    Cursor,
}
