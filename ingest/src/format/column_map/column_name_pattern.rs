//! Column names that contain a symbol, a field or a date: `AAPL.Close`, `Close|AAPL`.

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
