//! Parameter specification recorded while a reader parses, for the OpenAPI document.

use serde_json::Value;

/// A text with something to read in it and no control characters, as a regular expression.
pub(super) const TEXT: &str =
    r"^[^\u0000-\u001F\u007F-\u009F]*[^\s\u0000-\u001F\u007F-\u009F][^\u0000-\u001F\u007F-\u009F]*$";
/// A symbol in a comma-separated list, as a regular expression: printable ASCII, not blank.
pub(super) const ITEM: &str = r"^[ -+\x2D-~]*[!-+\x2D-~][ -+\x2D-~]*$";

/// Where a parameter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Path,
    Query,
}

/// What a parameter may be, as its reader sees it.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) place: Place,
    pub(super) name: &'static str,
    pub(super) required: bool,
    /// A JSON schema.
    pub(super) schema: Value,
}
