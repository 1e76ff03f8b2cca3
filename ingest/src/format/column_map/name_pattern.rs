//! Patterns of names: column names that contain a symbol, a field or a date (`AAPL.Close`, `Close|AAPL`), and file names
//! or cells that contain a symbol (`div_{symbol}.csv`).

use std::fmt;

use market::symbol::Symbol;

/// Part of a column name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternPart {
    Symbol,
    Field,
    Date,
    Signs(String),
}

/// Pattern of column names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ColumnNamePattern(Vec<PatternPart>);

/// Parts that a pattern finds in one column name.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct NameParts<'a> {
    pub(super) symbol: Option<&'a str>,
    pub(super) field: Option<&'a str>,
    pub(super) date: Option<&'a str>,
}

const WORDS: [(&str, PatternPart); 3] =
    [("{symbol}", PatternPart::Symbol), ("{field}", PatternPart::Field), ("{date}", PatternPart::Date)];

impl ColumnNamePattern {
    /// Parses a pattern such as `{symbol}.{field}`. `None` if the pattern has neither symbol nor date, a repeated part,
    /// or parts without a separator.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (mut parts, mut rest): (Vec<PatternPart>, _) = (Vec::new(), text);
        while let Some(first) = rest.chars().next() {
            let word = WORDS.iter().find_map(|(word, part)| Some((rest.strip_prefix(word)?, part)));
            if let Some((after, part)) = word {
                let joined = parts.last().is_some_and(|last| !matches!(last, PatternPart::Signs(_)));
                if joined || parts.contains(part) {
                    return None;
                }
                parts.push(part.clone());
                rest = after;
                continue;
            }
            match parts.last_mut() {
                Some(PatternPart::Signs(signs)) => signs.push(first),
                _ => parts.push(PatternPart::Signs(first.to_string())),
            }
            rest = &rest[first.len_utf8()..];
        }
        let pattern = Self(parts);
        (pattern.has_symbol() || pattern.has_date()).then_some(pattern)
    }

    pub(super) fn has_symbol(&self) -> bool {
        self.0.contains(&PatternPart::Symbol)
    }

    pub(super) fn has_field(&self) -> bool {
        self.0.contains(&PatternPart::Field)
    }

    pub(super) fn has_date(&self) -> bool {
        self.0.contains(&PatternPart::Date)
    }

    /// Splits a column name by the pattern. Returns the first result that `wanted` accepts. The longest possible part
    /// before a separator is tried first: the symbol of `BRK.B.Close` is `BRK.B`.
    pub(super) fn read<'a>(
        &self,
        name: &'a str,
        wanted: &impl Fn(&NameParts<'a>) -> bool,
    ) -> Option<NameParts<'a>> {
        read(&self.0, name, NameParts::default(), wanted)
    }
}

fn read<'a>(
    parts: &[PatternPart],
    rest: &'a str,
    found: NameParts<'a>,
    wanted: &impl Fn(&NameParts<'a>) -> bool,
) -> Option<NameParts<'a>> {
    let Some((first, later)) = parts.split_first() else {
        return Some(found).filter(|found| rest.is_empty() && wanted(found));
    };
    if let PatternPart::Signs(signs) = first {
        return read(later, rest.strip_prefix(signs.as_str())?, found, wanted);
    }
    let take = |end: usize| {
        let (text, after) = rest.split_at(end);
        let mut found = found.clone();
        match first {
            PatternPart::Symbol => found.symbol = Some(text),
            PatternPart::Field => found.field = Some(text),
            _ => found.date = Some(text),
        }
        read(later, after, found, wanted)
    };
    match later.first() {
        Some(PatternPart::Signs(signs)) => rest.rmatch_indices(signs.as_str()).find_map(|(end, _)| take(end)),
        _ => take(rest.len()),
    }
}

const PLACEHOLDER: &str = "{symbol}";

/// Pattern with one `{symbol}`, for a file name or for the end of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolPattern {
    before: String,
    after: String,
}

impl SymbolPattern {
    /// Parses a pattern such as `div_{symbol}.csv`.
    ///
    /// # Errors
    /// The text does not have exactly one `{symbol}`.
    pub fn parse(pattern: &str) -> Result<Self, String> {
        match pattern.split_once(PLACEHOLDER) {
            Some((before, after)) if !after.contains(PLACEHOLDER) => {
                Ok(Self { before: before.to_owned(), after: after.to_owned() })
            }
            _ => Err("the pattern needs one {symbol} in the symbol's place: div_{symbol}.csv".to_owned()),
        }
    }

    /// Symbol that the pattern finds in a file's path. The pattern may omit the endings of the file name (`.csv`,
    /// `.gz`).
    pub(crate) fn extract_symbol(&self, label: &str) -> Option<Symbol> {
        let folders = self.before.matches('/').count() + self.after.matches('/').count();
        let start = label.rmatch_indices('/').nth(folders).map_or(0, |(at, _)| at + 1);
        let name = &label[start..];
        let unpacked = [".gz", ".zst"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
        let stem = unpacked.rsplit_once('.').map_or(unpacked, |(stem, _)| stem);
        // If the pattern ends with the symbol, only the stem is matched. Otherwise the symbol would include the ending.
        let forms = if self.after.is_empty() { vec![stem] } else { vec![name, unpacked, stem] };
        forms.into_iter().find_map(|form| {
            let text = self.extract_text(form)?;
            Symbol::parse(text).ok().filter(|_| !text.contains('/'))
        })
    }

    /// Text at the position of the symbol; `None` if the text does not fit the pattern.
    pub(super) fn extract_text<'a>(&self, text: &'a str) -> Option<&'a str> {
        text.strip_prefix(self.before.as_str())?.strip_suffix(self.after.as_str())
    }
}

impl fmt::Display for SymbolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{PLACEHOLDER}{}", self.before, self.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, name: &str, expected: Option<(&str, &str)>) {
        let pattern = ColumnNamePattern::parse(pattern).unwrap();
        let wanted = |parts: &NameParts<'_>| parts.field.is_none_or(|field| field == "Close");
        let found = pattern.read(name, &wanted);
        let found = found.map(|parts| (parts.symbol.unwrap_or("-"), parts.field.unwrap_or("-")));
        assert_eq!(found, expected, "{name}");
    }

    #[test]
    fn names_are_taken_apart() {
        check("{symbol}", "AAPL", Some(("AAPL", "-")));
        check("{symbol}.{field}", "BRK.B.Close", Some(("BRK.B", "Close")));
        check("{field}.{symbol}", "Close.BRK.B", Some(("BRK.B", "Close")));
        check("{field}|{symbol}", "Close|AAPL", Some(("AAPL", "Close")));
        check("{symbol} US Equity", "AAPL US Equity", Some(("AAPL", "-")));
        check("{symbol} US Equity", "Average", None);
        check("{symbol}.{field}", "AAPL.Volume", None);
    }

    #[test]
    fn patterns_that_say_nothing_are_refused() {
        for pattern in ["", "{field}", "{symbol}{field}", "{symbol}-{symbol}"] {
            assert_eq!(ColumnNamePattern::parse(pattern), None, "{pattern}");
        }
    }
}
