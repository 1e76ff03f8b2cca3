//! Names of API keys and portfolios: 1 to 64 characters in Unicode normalization form C. At least one character is
//! visible.

use unicode_normalization::UnicodeNormalization;

use super::error::{AccountError, Result};

/// Parses a name. Surrounding spaces are removed. `action` is the start of the error message, such as `create the key`.
pub(super) fn parse_name(action: &str, text: &str) -> Result<String> {
    let name: String = text.trim().nfc().collect();
    let has_control = name.chars().any(|c| c.is_control() || is_bidi_control(c));
    if !(1..=64).contains(&name.chars().count()) || has_control || visible_part(&name).is_empty() {
        return Err(AccountError::Refused(format!(
            "cannot {action}: its name must have 1 to 64 characters, a visible one among them, and no control \
             characters"
        )));
    }
    Ok(name)
}

/// True if two names look the same: they are equal after normalization and removal of invisible characters.
pub(super) fn is_same_name(one: &str, other: &str) -> bool {
    visible_part(one) == visible_part(other)
}

fn visible_part(name: &str) -> String {
    let visible: String = name.nfc().filter(|c| !is_invisible(*c)).collect();
    visible.trim().nfc().collect()
}

/// True for a control character that changes the direction of the text around it.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// True for a character without a glyph: a format character, a filler or a variation selector. False for a space.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_visible_and_has_one_spelling() {
        assert_eq!(parse_name("create the key", " cafe\u{301} ").ok().as_deref(), Some("caf\u{e9}"));
        for valid in ["laptop", "日本", "👩\u{200d}💻", "x".repeat(64).as_str()] {
            assert!(parse_name("create the key", valid).is_ok(), "{valid}");
        }
        let long = "x".repeat(65);
        for invalid in
            ["", " ", "\u{200b}", "\u{feff}\u{2060} \u{ad}", "\u{2800}", "a\nb", "a\u{202e}b", &long]
        {
            assert!(parse_name("create the key", invalid).is_err(), "{invalid:?}");
        }
        assert!(is_same_name("caf\u{e9}", "cafe\u{301}") && is_same_name("lap\u{200b}top", "laptop\u{feff}"));
        assert!(!is_same_name("laptop", "Laptop"));
    }
}
