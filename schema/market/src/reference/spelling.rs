//! Normalisation of names for look-ups.

/// Name without case, blanks and signs: `Cboe BZX (BATS)` is `cboebzxbats`.
pub fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
