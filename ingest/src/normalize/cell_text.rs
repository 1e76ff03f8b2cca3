//! Text of cells: words for absent values, and web addresses.

/// True if a cell is empty or has a word for an absent value.
pub(crate) fn is_absent_value(text: &[u8]) -> bool {
    matches!(text, b"" | b"null" | b"N/A" | b"n/a" | b"NULL" | b"0000-00-00")
}

/// Parses a web address. `None` for schemes other than http and https, because such links are unsafe.
pub(crate) fn parse_web_address(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    let has_host = rest.starts_with(|c: char| c.is_alphanumeric() || c == '[');
    (is_web && has_host && !text.contains(is_odd)).then_some(text)
}
