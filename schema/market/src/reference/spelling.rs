//! Common spelling of names, for look-ups.

/// Name in lower case without blanks and punctuation: `Cboe BZX (BATS)` is `cboebzxbats`.
pub fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
