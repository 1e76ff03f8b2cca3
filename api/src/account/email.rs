//! Email addresses, which identify accounts.

use super::error::{AccountError, Result};

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

#[cfg(test)]
mod tests {
    use super::parse_email;

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
}
