//! `--symbol-from PATTERN`: extraction of the symbol from a file name.

use std::fmt;

use market::symbol::Symbol;

const PLACE: &str = "{symbol}";

/// A pattern with one `{symbol}` in it, of a file's name or the end of its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolFrom {
    before: String,
    after: String,
}

impl SymbolFrom {
    /// Reads a pattern such as `div_{symbol}.csv`.
    ///
    /// # Errors
    /// A text without `{symbol}`, or with two of them.
    pub fn parse(pattern: &str) -> Result<Self, String> {
        match pattern.split_once(PLACE) {
            Some((before, after)) if !after.contains(PLACE) => {
                Ok(Self { before: before.to_owned(), after: after.to_owned() })
            }
            _ => {
                Err("write the file's name with {symbol} in the symbol's place: div_{symbol}.csv".to_owned())
            }
        }
    }

    /// The symbol in a file's path; the endings of the name (`.csv`, `.gz`) may be left out of the pattern.
    pub(super) fn symbol_of(&self, label: &str) -> Option<Symbol> {
        let folders = self.before.matches('/').count() + self.after.matches('/').count();
        let start = label.rmatch_indices('/').nth(folders).map_or(0, |(at, _)| at + 1);
        let name = &label[start..];
        let unpacked = [".gz", ".zst"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
        let stem = unpacked.rsplit_once('.').map_or(unpacked, |(stem, _)| stem);
        // A pattern that ends with the symbol would take the name's ending for a part of it.
        let forms = if self.after.is_empty() { vec![stem] } else { vec![name, unpacked, stem] };
        forms.into_iter().find_map(|form| {
            let text = self.inside(form)?;
            Symbol::parse(text).ok().filter(|_| !text.contains('/'))
        })
    }

    /// What stands in the symbol's place of a text that fits the pattern whole.
    pub(super) fn inside<'a>(&self, text: &'a str) -> Option<&'a str> {
        text.strip_prefix(self.before.as_str())?.strip_suffix(self.after.as_str())
    }
}

impl fmt::Display for SymbolFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{PLACE}{}", self.before, self.after)
    }
}
