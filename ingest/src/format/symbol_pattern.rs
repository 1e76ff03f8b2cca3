//! `--symbol-from PATTERN`: extraction of the symbol from a file name.

use std::fmt;

use market::symbol::Symbol;

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
    pub(super) fn extract_symbol(&self, label: &str) -> Option<Symbol> {
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
