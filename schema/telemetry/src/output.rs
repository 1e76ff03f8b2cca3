//! Standard output of commands: the macros `out!` and `outln!`, which handle a closed pipe.
//!
//! Text of a count with its noun: `1 row`, `2 rows`.
//!
//! Shortening of texts that others wrote, such as names in a vendor's file, for messages and logs.
//!
//! Escaping of CSV cells, so that no spreadsheet runs a cell as a formula.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

/// Writes to standard output. A closed pipe (`| head`) ends the process with exit code 0.
pub fn write_out(text: std::fmt::Arguments<'_>) {
    let Err(error) = std::io::stdout().lock().write_fmt(text) else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    tracing::error!(%error, "cannot write to standard output");
    std::process::exit(1);
}

/// Like `print!`, but writes with [`write_out`](crate::write_out).
#[macro_export]
macro_rules! out {
    ($($text:tt)*) => { $crate::write_out(format_args!($($text)*)) };
}

/// Like `println!`, but writes with [`write_out`](crate::write_out).
#[macro_export]
macro_rules! outln {
    ($($text:tt)*) => { $crate::write_out(format_args!("{}\n", format_args!($($text)*))) };
}

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

/// First `max_chars` characters of a text. If the text is longer, an ellipsis replaces the rest.
pub fn shorten(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Escapes a cell that a spreadsheet would run as a formula. The cell begins with a formula sign, which may be
/// full-width (`＝`), or with a tab or line break.
#[must_use]
pub fn escape_formula(text: String) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']) {
        format!("'{text}")
    } else {
        text
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

#[cfg(test)]
mod shorten_tests {
    use super::shorten;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(shorten("Kurse", 5), "Kurse");
        assert_eq!(shorten("öäü", 2), "öä…");
        assert_eq!(shorten("", 0), "");
    }
}

#[cfg(test)]
mod csv_cell_tests {
    use super::*;

    #[test]
    fn full_width_signs_are_escaped() {
        for text in ["=1", "-1", "＝1+1", "＋1", "－1", "＠a", "\n=1"] {
            assert_eq!(escape_formula(text.to_owned()), format!("'{text}"));
        }
        assert_eq!(escape_formula("Ａ＝".to_owned()), "Ａ＝");
    }
}
