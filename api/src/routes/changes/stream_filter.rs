//! Filter of a change stream: kinds and symbols.

use std::collections::BTreeSet;

use crate::auth::tier::Tier;
use crate::parameters::{ChangeKind, SymbolList};
use crate::read::changes::{Change, ChangeContent};

/// Required tier and feature name of a stream for the whole market.
pub(super) const MARKET: (Tier, &str) = (Tier::Professional, "market_changes");

/// Filter of a change stream.
#[derive(Debug)]
pub(super) struct StreamFilter {
    pub(super) kinds: Vec<ChangeKind>,
    /// Symbols of the filter; `None` for the whole market.
    symbols: Option<SymbolFilter>,
}

/// Symbols that a change stream delivers.
#[derive(Debug)]
struct SymbolFilter {
    /// Canonical symbols, and symbols as the client wrote them. A rename adds the new symbol.
    canonical: BTreeSet<String>,
    /// All spellings of the symbols in the request.
    spellings: BTreeSet<String>,
}

impl StreamFilter {
    /// Creates a filter for the symbols in `list`. `known` contains their canonical symbols, without unknown symbols.
    pub(super) fn new(kinds: Vec<ChangeKind>, list: Option<&SymbolList>, known: Vec<String>) -> Self {
        let symbols = list.map(|list| {
            // Symbols as the client wrote them are included. Removed rows can have a former symbol, and unknown symbols
            // can become known.
            let written = list.0.iter().filter_map(|symbol| symbol.candidates.first().cloned());
            let spellings = list.0.iter().flat_map(|symbol| symbol.candidates.iter().cloned());
            SymbolFilter {
                canonical: known.into_iter().chain(written).collect(),
                spellings: spellings.collect(),
            }
        });
        Self { kinds, symbols }
    }

    /// Symbols by which changes are selected; `None` for the whole market.
    pub(super) fn canonical_symbols(&self) -> Option<Vec<String>> {
        self.symbols.as_ref().map(|symbols| symbols.canonical.iter().cloned().collect())
    }

    /// True if the stream delivers the change. The order of delivery matters, because a rename adds its new symbol to
    /// the filter.
    pub(super) fn admits(&mut self, change: &Change) -> bool {
        let symbol = &change.key.symbol;
        let Some(symbols) = &mut self.symbols else { return self.kinds.contains(&change.key.kind) };
        if let ChangeContent::Events { spellings, .. } = &change.content
            && spellings.iter().any(|spelling| symbols.spellings.contains(spelling))
        {
            symbols.canonical.insert(symbol.clone());
        }
        symbols.canonical.contains(symbol) && self.kinds.contains(&change.key.kind)
    }
}
