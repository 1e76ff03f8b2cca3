//! Texts of messages, lists and files: counts with nouns, lists of names, shortened texts and escaped texts.

use std::fmt::{Display, Formatter};

use serde::Serialize;

/// Text of a count with its noun: `1 row`, `2 rows`. `noun` is the singular; every count except 1 gets the plural.
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

/// Joins the first `max_names` of `total` names, for example `AAA, BBB, …`.
pub fn list_names(names: impl IntoIterator<Item: Display>, max_names: usize, total: usize) -> String {
    let mut listed: Vec<String> = names.into_iter().take(max_names).map(|name| name.to_string()).collect();
    if listed.len() < total {
        listed.push("…".to_owned());
    }
    listed.join(", ")
}

/// Maximum number of items of a [`Sample`].
const MAX_SAMPLE: usize = 10;

/// Number of items, and the first ten of them, for a report.
#[derive(Debug, Clone, Serialize)]
pub struct Sample<T> {
    /// Number of all items.
    pub count: usize,
    /// First items.
    pub first: Vec<T>,
}

impl<T> Default for Sample<T> {
    fn default() -> Self {
        Self { count: 0, first: Vec::new() }
    }
}

impl<T> Sample<T> {
    /// Adds an item, which is only made if it is one of the first.
    pub fn add(&mut self, item: impl FnOnce() -> T) {
        self.count += 1;
        if self.first.len() < MAX_SAMPLE {
            self.first.push(item());
        }
    }

    /// Adds the items of another sample.
    pub fn merge(&mut self, other: &Self)
    where
        T: Clone,
    {
        self.count += other.count;
        let room = MAX_SAMPLE.saturating_sub(self.first.len());
        self.first.extend(other.first.iter().take(room).cloned());
    }

    /// `None` without an item.
    pub fn non_empty(self) -> Option<Self> {
        (self.count > 0).then_some(self)
    }
}

/// Lists the first items, for example `AAA, BBB, …`.
impl<T: Display> Display for Sample<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&list_names(&self.first, MAX_SAMPLE, self.count))
    }
}

/// First `max_chars` characters of a text. If the text is longer, an ellipsis replaces the rest.
pub fn shorten(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Formats a number with its digits in groups of three: 1,234.
pub fn group_digits(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Escapes control characters, line separators and characters that change the text direction. A text with them could
/// forge a line of a log or table.
pub fn escape_controls(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
            escaped.extend(character.escape_default());
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// Escapes a CSV cell that a spreadsheet would run as a formula. The cell begins with a formula sign, which may be
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
    use super::*;

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

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(shorten("Kurse", 5), "Kurse");
        assert_eq!(shorten("öäü", 2), "öä…");
        assert_eq!(shorten("", 0), "");
    }

    #[test]
    fn full_width_signs_are_escaped() {
        for text in ["=1", "-1", "＝1+1", "＋1", "－1", "＠a", "\n=1"] {
            assert_eq!(escape_formula(text.to_owned()), format!("'{text}"));
        }
        assert_eq!(escape_formula("Ａ＝".to_owned()), "Ａ＝");
    }

    #[test]
    fn a_list_says_that_it_leaves_out_names() {
        assert_eq!(list_names(["A", "B", "C"], 2, 3), "A, B, …");
        assert_eq!(list_names(["A", "B"], 2, 2), "A, B");
    }

    #[test]
    fn a_text_stays_on_its_line() {
        assert_eq!(
            escape_controls("a\n2024 ERROR b\u{1b}[2K\u{202e}.csv"),
            r"a\n2024 ERROR b\u{1b}[2K\u{202e}.csv"
        );
        assert_eq!(escape_controls("Kurse Ö'1'.csv"), "Kurse Ö'1'.csv");
    }
}
