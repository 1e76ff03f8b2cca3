//! Shortening of texts that others wrote, such as names in a vendor's file, for messages and logs.

/// First `max_chars` characters of a text. If the text is longer, an ellipsis replaces the rest.
pub fn shorten(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::shorten;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(shorten("Kurse", 5), "Kurse");
        assert_eq!(shorten("öäü", 2), "öä…");
        assert_eq!(shorten("", 0), "");
    }
}
