//! Ticker symbol in one canonical spelling, `BRK.B`, for all vendors (R26): upper case, and one `.` between root and
//! suffix. `BRK-B`, `BRK/B` and `brk.b` are the same symbol.

use std::fmt;
use std::iter::{once, once_with};

use compact_str::{CompactString, format_compact};
use serde::{Deserialize, Serialize};

/// Ticker in canonical spelling: upper case, trimmed, one `.` between root and suffix. Preferred shares may have
/// several spellings; [`Symbol::spellings`] returns the symbols to look up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Symbol(CompactString);

/// Maximum length of a symbol, in characters.
const LONGEST: usize = 24;

/// Error for a text that is not a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a ticker symbol (1 to 24 letters, digits and . - / ^ = & + $ _)")]
pub struct SymbolError;

impl Symbol {
    /// Parses a symbol in the spelling of any vendor.
    pub fn parse(text: &str) -> Result<Self, SymbolError> {
        // A fixed buffer is faster than a growing string; ingest parses millions of rows.
        let (mut symbol, mut length) = ([0; LONGEST], 0);
        for byte in text.trim().bytes() {
            let next = match byte {
                b'A'..=b'Z' | b'0'..=b'9' | b'^' | b'=' | b'&' | b'+' | b'$' | b'_' => byte,
                b'a'..=b'z' => byte.to_ascii_uppercase(),
                b'.' | b'-' | b'/' | b' ' => b'.',
                _ => return Err(SymbolError),
            };
            // A separator cannot be first and cannot follow another separator.
            if next == b'.' && (length == 0 || symbol[length - 1] == b'.') {
                return Err(SymbolError);
            }
            *symbol.get_mut(length).ok_or(SymbolError)? = next;
            length += 1;
        }
        match std::str::from_utf8(&symbol[..length]) {
            Ok(symbol) if !symbol.is_empty() && !symbol.ends_with('.') => Ok(Self(symbol.into())),
            _ => Err(SymbolError),
        }
    }

    /// Creates a symbol from a text that the database stores. The text must already be in canonical spelling; it is not
    /// validated.
    pub fn from_stored(text: &str) -> Self {
        Self(text.into())
    }

    /// Text of the symbol.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Symbols to look up for this symbol, best first: the symbol itself, then the preferred share that it may mean.
    /// For example, `BAC.L` may mean `BAC.PRL`.
    pub fn spellings(&self) -> impl Iterator<Item = Symbol> {
        let preferred = || {
            let (root, suffix) = self.0.rsplit_once('.')?;
            match suffix.as_bytes() {
                [class] if class.is_ascii_alphabetic() => Some(format_compact!("{root}.PR{suffix}")),
                [b'P', class] if class.is_ascii_alphabetic() => {
                    Some(format_compact!("{root}.PR{}", char::from(*class)))
                }
                _ => None,
            }
        };
        once(self.clone()).chain(once_with(preferred).flatten().map(Symbol))
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for Symbol {
    type Err = SymbolError;
    fn from_str(text: &str) -> Result<Self, SymbolError> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling_for_every_vendor() {
        for text in ["BRK.B", "BRK-B", "BRK/B", "brk b", " brk.b "] {
            assert_eq!(Symbol::parse(text).map(|s| s.to_string()), Ok("BRK.B".to_owned()), "{text}");
        }
    }

    #[test]
    fn preferred_shares_have_one_canonical_candidate() {
        for text in ["BAC-L", "BAC-PL", "BAC PRL"] {
            let symbol = Symbol::parse(text).unwrap();
            assert!(symbol.spellings().any(|s| s.as_str() == "BAC.PRL"), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_ticker() {
        for text in ["", " ", ".", "A..B", "-A", "A-", "Ä", "A;B", "ABCDEFGHIJKLMNOPQRSTUVWXY"] {
            assert!(Symbol::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_bounds_of_a_ticker() {
        let longest = "A".repeat(24);
        assert_eq!(Symbol::parse(&longest).map(|symbol| symbol.as_str().to_owned()), Ok(longest.clone()));
        assert_eq!(Symbol::parse(&(longest + "A")), Err(SymbolError));
        for text in ["^GSPC", "EURUSD=X", "A&B", "A+", "A$B", "A_B", "0700.HK"] {
            assert_eq!(text.parse::<Symbol>().map(|symbol| symbol.to_string()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn only_preferred_shares_have_another_spelling() {
        let spelled = |text: &str| {
            Symbol::parse(text).unwrap().spellings().map(|symbol| symbol.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(spelled("BAC.L"), ["BAC.L", "BAC.PRL"]);
        assert_eq!(spelled("BAC.PL"), ["BAC.PL", "BAC.PRL"]);
        assert_eq!(spelled("BAC.PRL"), ["BAC.PRL"]);
        assert_eq!(spelled("0700.1"), ["0700.1"]);
        assert_eq!(spelled("X.P1"), ["X.P1"]);
        assert_eq!(spelled("X.QL"), ["X.QL"]);
        assert_eq!(spelled("BAC"), ["BAC"]);
    }
}
