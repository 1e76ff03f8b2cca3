//! Look-up of a queried symbol among the known symbols (R26). A preferred share is also found by other spellings of its
//! symbol, for example `BAC-L` for `BAC.PRL`.
//!
//! Source of the spellings: the symbologies of Nasdaq, CMS, Yahoo and Bloomberg.

use std::collections::BTreeSet;

use crate::symbol::Symbol;

/// Known symbol that matches `query`; `None` without a match.
pub fn resolve(query: &str, known: &BTreeSet<Symbol>) -> Option<Symbol> {
    Symbol::parse(query).ok()?.spellings().find(|spelling| known.contains(spelling))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendors_spellings_meet_the_known_symbol() {
        let known: BTreeSet<Symbol> =
            ["BRK.B", "BAC", "BAC.PRL"].iter().map(|s| Symbol::parse(s).unwrap()).collect();
        for (query, expected) in [
            ("brk b", Some("BRK.B")),
            ("BAC-L", Some("BAC.PRL")),
            ("BAC-PL", Some("BAC.PRL")),
            ("BAC.PRA", None),
            ("ZZZZ", None),
        ] {
            assert_eq!(resolve(query, &known).as_ref().map(Symbol::as_str), expected, "{query}");
        }
    }
}
