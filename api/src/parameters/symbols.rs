//! Symbols in paths and lists. Vendor spellings are parsed into the canonical form.

use market::symbol::Symbol;
use serde_json::json;

use super::ParameterReader;
use super::reader::ITEM;

/// Maximum length of a list item, in characters. All tickers are shorter. A list of a thousand such items fits into a
/// request head.
const MAX_LENGTH: usize = 24;

/// Symbol in a path. An invalid ticker is answered with a 404, like an unknown ticker.
#[derive(Debug, Clone)]
pub(crate) struct PathSymbol {
    /// Symbol as the client wrote it, truncated for error messages.
    pub(crate) text: String,
    symbol: Option<Symbol>,
}

impl PathSymbol {
    /// List that contains only this symbol.
    pub(crate) fn to_list(&self) -> SymbolList {
        SymbolList(vec![ListedSymbol { text: self.text.clone(), candidates: self.candidates() }])
    }

    /// Spellings to look up, the most likely first.
    pub(crate) fn candidates(&self) -> Vec<String> {
        self.symbol.as_ref().map(spellings).unwrap_or_default()
    }
}

fn spellings(symbol: &Symbol) -> Vec<String> {
    symbol.spellings().map(|symbol| symbol.as_str().to_owned()).collect()
}

/// Symbol in a list.
#[derive(Debug, Clone)]
pub(crate) struct ListedSymbol {
    pub(crate) text: String,
    pub(crate) candidates: Vec<String>,
}

impl ListedSymbol {
    /// Parses one item of a list; `None` if it is not 1 to [`MAX_LENGTH`] printable ASCII characters.
    pub(super) fn parse(item: &str) -> Option<Self> {
        let is_item =
            !item.is_empty() && item.len() <= MAX_LENGTH && item.bytes().all(|b| matches!(b, b' '..=b'~'));
        let candidates = || Symbol::parse(item).ok().as_ref().map(spellings).unwrap_or_default();
        is_item.then(|| Self { text: item.to_owned(), candidates: candidates() })
    }

    /// True if both items name the same symbol.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.text.eq_ignore_ascii_case(&other.text)
            || (!self.candidates.is_empty() && self.candidates == other.candidates)
    }
}

/// Comma-separated list of distinct symbols.
#[derive(Debug, Clone, Default)]
pub(crate) struct SymbolList(pub(crate) Vec<ListedSymbol>);

impl SymbolList {
    /// Columns for the look-up of all symbols, one row per spelling: the symbol's index in the list, and the spelling.
    pub(crate) fn to_columns(&self) -> (Vec<i32>, Vec<String>) {
        let spelled = self.0.iter().zip(0i32..).flat_map(|(symbol, place)| {
            symbol.candidates.iter().map(move |candidate| (place, candidate.clone()))
        });
        spelled.unzip()
    }
}

impl ParameterReader<'_> {
    /// Reads the path segment `{symbol}`.
    pub(crate) fn read_symbol(&mut self) -> PathSymbol {
        let mut text = self.read_path("symbol");
        self.describe("symbol", "Ticker symbol in any common spelling: BRK.B, BRK-B, brk.b, BRK%2FB.");
        let symbol = Symbol::parse(&text).ok();
        if let Some((end, _)) = text.char_indices().nth(64) {
            text.truncate(end);
        }
        PathSymbol { text, symbol }
    }

    /// Reads the list `symbols`. Repeated symbols are dropped. More than `most` distinct symbols are an error.
    pub(crate) fn read_symbols(&mut self, most: usize) -> Option<SymbolList> {
        let item = || json!({ "type": "string", "minLength": 1, "maxLength": MAX_LENGTH, "pattern": ITEM });
        let schema = || json!({ "type": "array", "minItems": 1, "maxItems": most, "items": item() });
        let text = self.read_value("symbols", schema)?;
        let mut list: Vec<ListedSymbol> = Vec::new();
        for item in text.split(',').map(str::trim) {
            let Some(symbol) = ListedSymbol::parse(item) else {
                let error = format!("has an item that is not 1 to {MAX_LENGTH} ASCII characters");
                self.add_error("symbols", error, None);
                return None;
            };
            if !list.iter().any(|known| known.is_same(&symbol)) {
                list.push(symbol);
            }
        }
        if list.len() > most {
            let error = format!("has more than {most} symbols");
            self.add_error("symbols", error, Some(json!({ "maximum": most })));
            return None;
        }
        Some(SymbolList(list))
    }

    /// Reads the list `symbols` as a required parameter.
    pub(crate) fn read_required_symbols(&mut self, most: usize) -> SymbolList {
        let symbols = self.read_symbols(most);
        self.require_given("symbols");
        symbols.unwrap_or_default()
    }
}
