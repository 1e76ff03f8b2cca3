//! Text of a count with its noun: `1 row`, `2 rows`.

use std::fmt::Display;

/// Text of a count with its noun. `noun` is the singular; every count except 1 gets the plural.
pub fn counted(count: impl Display, noun: &str) -> String {
    let count = count.to_string();
    if count == "1" {
        return format!("{count} {noun}");
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{count} {stem}ies"),
        _ if noun.ends_with("ch") => format!("{count} {noun}es"),
        _ => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn every_count_but_one_has_the_plural() {
        assert_eq!(
            [counted(0, "row"), counted(1, "row"), counted(11, "row")],
            ["0 rows", "1 row", "11 rows"]
        );
        assert_eq!(
            [counted(1, "record batch"), counted(2, "record batch")],
            ["1 record batch", "2 record batches"]
        );
        assert_eq!([counted(3, "day"), counted(3, "security")], ["3 days", "3 securities"]);
    }
}
