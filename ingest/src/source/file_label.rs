//! File names as text, for messages, manifests and logs.

/// Escapes control characters, line separators and characters that change the text direction. A file name with them
/// could forge a log line.
pub(crate) fn escape_name(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for character in name.chars() {
        if is_unprintable(character) {
            escaped.extend(character.escape_default());
        } else {
            escaped.push(character);
        }
    }
    escaped
}

fn is_unprintable(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_on_its_line() {
        assert_eq!(
            escape_name("a\n2024 ERROR b\u{1b}[2K\u{202e}.csv"),
            r"a\n2024 ERROR b\u{1b}[2K\u{202e}.csv"
        );
        assert_eq!(escape_name("Kurse Ö'1'.csv"), "Kurse Ö'1'.csv");
    }
}
