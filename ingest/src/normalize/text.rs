//! Cells as text: the words for nothing, blanks, web addresses.

/// True if a cell says that there is no value.
pub(crate) fn is_absent(text: &[u8]) -> bool {
    matches!(text, b"" | b"null" | b"N/A" | b"n/a" | b"NULL" | b"0000-00-00")
}

/// Takes blanks off both ends.
pub(crate) fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

/// A web address; `None` for any other scheme, which a page could not link to safely.
pub(crate) fn web_address(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    let has_host = rest.starts_with(|c: char| c.is_alphanumeric() || c == '[');
    (is_web && has_host && !text.contains(is_odd)).then_some(text)
}
