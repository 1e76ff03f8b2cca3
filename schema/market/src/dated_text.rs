//! Text with typed days and years, and the limit of a plan's history.
//!
//! Invariant: [`dated_text!`] accepts no text that is formatted beforehand. A day or a year is therefore always typed,
//! and a limit removes it together with its figure.

use std::fmt::{self, Display};

use chrono::NaiveDate;
use serde::{Serialize, Serializer};

/// Data of one security for one client. The plan of the client limits how far back the history goes.
pub trait LimitToHistory {
    /// Removes days, yearly figures and records from before `first`, the first day of the plan's history.
    #[must_use]
    fn limit_to_days_from(self, first: NaiveDate) -> Self;
}

/// Text with typed days and years.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DatedText(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Plain(String),
    Terms(Terms),
}

/// Terms of one day or of one year each, in date order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Terms {
    unit: Unit,
    separator: &'static str,
    terms: Vec<Term>,
    /// Number of earlier terms that a limit removed.
    left_out: usize,
}

/// Text about one day or one year. It may contain figures of that day or year.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    begin: NaiveDate,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Day,
    Year,
}

/// Number, word or name that contains no date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Undated(String);

/// Part of a [`DatedText`].
pub(crate) trait TextPart {
    fn append_to(self, text: &mut DatedText);
}

/// Builds a [`DatedText`] from a template, in which the next part replaces `{}`.
macro_rules! dated_text {
    ($template:literal $(, $part:expr)* $(,)?) => {{
        let mut pieces = $template.split("{}");
        let mut text = $crate::dated_text::DatedText::plain(pieces.next().unwrap_or_default());
        $(
            $crate::dated_text::TextPart::append_to($part, &mut text);
            text.push_plain(pieces.next().unwrap_or_default());
        )*
        text
    }};
}
pub(crate) use dated_text;

/// Converts a number, word or name that contains no date.
pub(crate) fn undated(value: impl Display) -> Undated {
    Undated(value.to_string())
}

impl Terms {
    /// One day. `text` names the day, and may contain its figures.
    pub(crate) fn of_day(day: NaiveDate, text: impl Display) -> Self {
        Self::days("", [(day, text.to_string())])
    }

    /// One year. `text` names the year, and may contain its figures.
    pub(crate) fn of_year(year: i32, text: impl Display) -> Self {
        Self::years("", [(year, text.to_string())])
    }

    pub(crate) fn days(
        separator: &'static str,
        terms: impl IntoIterator<Item = (NaiveDate, String)>,
    ) -> Self {
        let terms = terms.into_iter().map(|(begin, text)| Term { begin, text }).collect();
        Self { unit: Unit::Day, separator, terms, left_out: 0 }
    }

    pub(crate) fn years(separator: &'static str, terms: impl IntoIterator<Item = (i32, String)>) -> Self {
        let begin = |year| NaiveDate::from_yo_opt(year, 1).unwrap_or(NaiveDate::MIN);
        let terms = terms.into_iter().map(|(year, text)| Term { begin: begin(year), text }).collect();
        Self { unit: Unit::Year, separator, terms, left_out: 0 }
    }
}

impl DatedText {
    /// Types the days of a stored text. Stored texts write days as `YYYY-MM-DD`, and name no years.
    pub fn parse(text: &str) -> Self {
        let mut parsed = Self::default();
        let mut rest = text;
        while let Some((before, day, written, after)) = split_at_day(rest) {
            parsed.push_plain(before);
            parsed.0.push(Part::Terms(Terms::of_day(day, written)));
            rest = after;
        }
        parsed.push_plain(rest);
        parsed
    }

    /// True if the text has a day before `first`, or a year that begins before `first`.
    pub fn is_older_than(&self, first: NaiveDate) -> bool {
        self.0.iter().any(|part| match part {
            Part::Plain(_) => false,
            Part::Terms(terms) => terms.terms.iter().any(|term| term.begin < first),
        })
    }

    /// True if the text is empty.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|part| match part {
            Part::Plain(text) => text.is_empty(),
            Part::Terms(terms) => terms.terms.is_empty() && terms.left_out == 0,
        })
    }

    pub(crate) fn plain(text: &'static str) -> Self {
        let mut plain = Self::default();
        plain.push_plain(text);
        plain
    }

    pub(crate) fn push_plain(&mut self, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(Part::Plain(last)) => last.push_str(text),
            _ => self.0.push(Part::Plain(text.to_owned())),
        }
    }
}

impl From<&'static str> for DatedText {
    fn from(text: &'static str) -> Self {
        Self::plain(text)
    }
}

impl LimitToHistory for DatedText {
    /// Replaces days before `first`, and years that begin before it, by a note. The note has their number.
    fn limit_to_days_from(mut self, first: NaiveDate) -> Self {
        for part in &mut self.0 {
            if let Part::Terms(terms) = part {
                let all = terms.terms.len();
                terms.terms.retain(|term| term.begin >= first);
                terms.left_out += all - terms.terms.len();
            }
        }
        self
    }
}

/// Splits at the first day: the text before it, the day, the day as written, and the text after it.
fn split_at_day(text: &str) -> Option<(&str, NaiveDate, &str, &str)> {
    const LENGTH: usize = "YYYY-MM-DD".len();
    for (start, _) in text.char_indices() {
        let Some(written) = text.get(start..start + LENGTH) else { continue };
        let (before, after) = (&text[..start], &text[start + LENGTH..]);
        let is_digit = |c: char| c.is_ascii_digit();
        if before.ends_with(is_digit) || after.starts_with(is_digit) || !written.starts_with(is_digit) {
            continue;
        }
        if let Ok(day) = written.parse() {
            return Some((before, day, written, after));
        }
    }
    None
}

impl Display for DatedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            Part::Plain(text) => f.write_str(text),
            Part::Terms(terms) => terms.fmt(f),
        })
    }
}

impl Display for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_first = true;
        if self.left_out > 0 {
            let unit = match (self.unit, self.left_out) {
                (Unit::Day, 1) => "day",
                (Unit::Day, _) => "days",
                (Unit::Year, 1) => "year",
                (Unit::Year, _) => "years",
            };
            write!(f, "[{} earlier {unit} outside the plan's history]", self.left_out)?;
            is_first = false;
        }
        for term in &self.terms {
            if !is_first {
                f.write_str(self.separator)?;
            }
            f.write_str(&term.text)?;
            is_first = false;
        }
        Ok(())
    }
}

impl Display for Undated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for DatedText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl TextPart for &'static str {
    fn append_to(self, text: &mut DatedText) {
        text.push_plain(self);
    }
}

impl TextPart for Undated {
    fn append_to(self, text: &mut DatedText) {
        text.push_plain(&self.0);
    }
}

impl TextPart for NaiveDate {
    fn append_to(self, text: &mut DatedText) {
        Terms::of_day(self, self).append_to(text);
    }
}

impl TextPart for Option<NaiveDate> {
    fn append_to(self, text: &mut DatedText) {
        match self {
            Some(day) => day.append_to(text),
            None => text.push_plain("none"),
        }
    }
}

impl TextPart for Terms {
    fn append_to(self, text: &mut DatedText) {
        text.0.push(Part::Terms(self));
    }
}

impl TextPart for DatedText {
    fn append_to(self, text: &mut DatedText) {
        for part in self.0 {
            match part {
                Part::Plain(plain) => text.push_plain(&plain),
                Part::Terms(terms) => text.0.push(Part::Terms(terms)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    #[test]
    fn earlier_years_are_counted_instead_of_listed() {
        let totals = (2020..=2024).map(|year| (year, format!("{year}: 1.{year}")));
        let text = dated_text!("totals: {}; since {}", Terms::years(", ", totals), day("2020-03-04"));
        let whole =
            "totals: 2020: 1.2020, 2021: 1.2021, 2022: 1.2022, 2023: 1.2023, 2024: 1.2024; since 2020-03-04";
        assert_eq!(text.to_string(), whole);
        let expected = "totals: [3 earlier years outside the plan's history], 2023: 1.2023, 2024: 1.2024; since \
                        [1 earlier day outside the plan's history]";
        // A year that begins one day before the history has a figure from outside the history.
        for (first, expected) in [("2022-01-02", expected), ("2020-01-01", whole)] {
            assert_eq!(text.clone().limit_to_days_from(day(first)).to_string(), expected, "{first}");
        }
        let twice = text.limit_to_days_from(day("2022-06-01")).limit_to_days_from(day("2025-01-01"));
        assert!(twice.to_string().starts_with("totals: [5 earlier years outside the plan's history]; since"));
    }

    #[test]
    fn days_of_a_stored_text_are_typed() {
        for (text, expected) in [
            ("", ""),
            ("a close of 2019-05-06.", "a close of [1 earlier day outside the plan's history]."),
            ("2019-05-06T10:00:00Z", "[1 earlier day outside the plan's history]T10:00:00Z"),
            (
                "2024-05-06, é 12019-05-06, 2019-05-061, 2019-13-01",
                "2024-05-06, é 12019-05-06, 2019-05-061, 2019-13-01",
            ),
        ] {
            let parsed = DatedText::parse(text);
            assert_eq!(parsed.to_string(), text);
            assert_eq!(parsed.is_older_than(day("2024-01-01")), text != expected, "{text}");
            assert_eq!(parsed.limit_to_days_from(day("2024-01-01")).to_string(), expected);
        }
    }
}
