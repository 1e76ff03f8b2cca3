//! What spellings of one name have in common.

/// A name without case, blanks and signs: `Cboe BZX (BATS)` is `cboebzxbats`.
pub fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
