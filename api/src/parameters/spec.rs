//! Parameter specification: name, location and schema. The parameter reader records it for the OpenAPI document.

use serde_json::Value;

/// Regular expression for a text without control characters that has at least one visible character.
pub(super) const TEXT: &str =
    r"^[^\u0000-\u001F\u007F-\u009F]*[^\s\u0000-\u001F\u007F-\u009F][^\u0000-\u001F\u007F-\u009F]*$";
/// Regular expression for a symbol in a comma-separated list. It accepts printable ASCII characters except the comma.
/// At least one character must not be blank.
pub(super) const ITEM: &str = r"^[ -+\x2D-~]*[!-+\x2D-~][ -+\x2D-~]*$";

/// Name, location and accepted values of a parameter, as recorded while it is read.
#[derive(Debug)]
pub(super) struct ParameterSpec {
    /// True for a segment of the path, false for a parameter of the query.
    pub(super) is_in_path: bool,
    pub(super) name: &'static str,
    pub(super) required: bool,
    pub(super) schema: Value,
    /// Description that the reader recorded; empty if it recorded none. A description in the endpoint's parameter
    /// struct has precedence.
    pub(super) description: String,
}
