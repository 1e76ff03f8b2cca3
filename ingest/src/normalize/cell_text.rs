//! Text of cells: words for absent values such as `N/A`, and web addresses.

/// True if a cell is empty, or contains a word for an absent value such as `N/A`.
pub(crate) fn is_absent_value(text: &[u8]) -> bool {
    matches!(text, b"" | b"null" | b"N/A" | b"n/a" | b"NULL" | b"0000-00-00")
}

/// Parses a web address. `None` if the scheme is not http or https, because other links may be unsafe.
pub(crate) fn parse_web_address(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    let has_host = rest.starts_with(|c: char| c.is_alphanumeric() || c == '[');
    (is_web && has_host && !text.contains(is_odd)).then_some(text)
}
