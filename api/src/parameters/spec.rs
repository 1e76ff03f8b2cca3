//! Parameter specification: name, location and schema. A reader records it for the OpenAPI document.

use serde_json::Value;

/// Regular expression for a text without control characters that has at least one visible character.
pub(super) const TEXT: &str =
    r"^[^\u0000-\u001F\u007F-\u009F]*[^\s\u0000-\u001F\u007F-\u009F][^\u0000-\u001F\u007F-\u009F]*$";
/// Regular expression for a symbol in a comma-separated list: printable ASCII characters, not all blank.
pub(super) const ITEM: &str = r"^[ -+\x2D-~]*[!-+\x2D-~][ -+\x2D-~]*$";

/// Name, location and accepted values of a parameter, as recorded while it is read.
#[derive(Debug)]
pub(super) struct ParameterSpec {
    /// True for a segment of the path, false for a parameter of the query.
    pub(super) is_in_path: bool,
    pub(super) name: &'static str,
    pub(super) required: bool,
    pub(super) schema: Value,
    /// Description; empty if the endpoint describes the parameter.
    pub(super) description: String,
}
