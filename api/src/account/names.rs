//! Names that people choose: email addresses, which identify accounts, and names of API keys and portfolios.

use unicode_normalization::UnicodeNormalization;

use super::audit::{AccountError, Result};

/// Parses an email address: one @, a local part, and a domain with a dot. The result is in lower case.
pub(crate) fn parse_email(text: &str) -> Result<String> {
    let trimmed = text.trim();
    let valid = trimmed.split_once('@').is_some_and(|(local, domain)| {
        let local = (1..=64).contains(&local.len())
            && local.chars().all(|c| c.is_alphanumeric() || "!#$%&'*+/=?^_`{|}~.-".contains(c));
        let label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.chars().all(|c| c.is_alphanumeric() || c == '-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        let dots = !trimmed.contains("..") && !trimmed.starts_with('.') && !trimmed.contains(".@");
        local && dots && domain.contains('.') && domain.split('.').all(label)
    });
    if valid && trimmed.len() <= 254 {
        Ok(trimmed.to_lowercase())
    } else {
        Err(AccountError::Email(text.to_owned()))
    }
}

/// Parses a name. Surrounding spaces are removed. `action` names the refused action in the error message. For example,
/// `create the key` results in "cannot create the key: …".
pub(super) fn parse_name(action: &str, text: &str) -> Result<String> {
    let name: String = text.trim().nfc().collect();
    let has_control = name.chars().any(|c| c.is_control() || is_bidi_control(c));
    if !(1..=64).contains(&name.chars().count()) || has_control || visible_part(&name).is_empty() {
        return Err(AccountError::Refused(format!(
            "cannot {action}: its name must have 1 to 64 characters, at least one of them visible, and no \
             control characters"
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
    use super::{parse_email, *};

    #[test]
    fn addresses_are_told_from_other_texts() {
        for good in ["a@example.com", "First.Last+tag@sub.example.co", " a@example.com "] {
            assert!(parse_email(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "a",
            "@example.com",
            "a@",
            "a@example",
            "a b@example.com",
            "a@ex ample.com",
            "a@@example.com",
            "a@-example.com",
            "a..b@example.com",
            "a@example..com",
            "a@example.com\n;",
        ] {
            assert!(parse_email(bad).is_err(), "{bad:?}");
        }
        assert_eq!(parse_email("A@Example.COM").ok().as_deref(), Some("a@example.com"));
    }

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
