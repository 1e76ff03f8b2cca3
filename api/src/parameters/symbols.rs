//! Addresses of securities in paths and lists: symbols in any vendor's spelling, identifiers, and markets.

use market::identity::{AddressError, SecurityAddress, is_plain_symbol};
use serde_json::json;

use super::ParameterReader;
use super::reader::ITEM;

/// Maximum length of a list item, in characters. All tickers are shorter. A list of a thousand such items fits into a
/// request head.
const MAX_LENGTH: usize = 24;

/// Address of a security, as a client wrote it. An invalid ticker is answered like an unknown ticker.
#[derive(Debug, Clone)]
pub(crate) struct RequestedSymbol {
    /// Address as the client wrote it, truncated for error messages.
    pub(crate) text: String,
    /// Keys to look up, the most likely first.
    pub(crate) candidates: Vec<String>,
    /// Name of the parameter.
    pub(crate) parameter: &'static str,
}

impl RequestedSymbol {
    fn parse(parameter: &'static str, text: &str) -> Result<Self, AddressError> {
        let candidates = match SecurityAddress::parse(text) {
            Ok(address) => address.into_keys(),
            Err(AddressError::Symbol(_)) => Vec::new(),
            Err(error) => return Err(error),
        };
        Ok(Self { text: text.to_owned(), candidates, parameter })
    }

    /// Parses one item of a list; `None` if it is not 1 to [`MAX_LENGTH`] printable ASCII characters.
    pub(crate) fn parse_item(parameter: &'static str, item: &str) -> Result<Option<Self>, AddressError> {
        let is_item =
            !item.is_empty() && item.len() <= MAX_LENGTH && item.bytes().all(|b| matches!(b, b' '..=b'~'));
        is_item.then(|| Self::parse(parameter, item)).transpose()
    }

    /// List that contains only this symbol.
    pub(crate) fn to_list(&self) -> SymbolList {
        SymbolList(vec![self.clone()])
    }

    /// True if the address is an identifier or has a market. Several listings may have it.
    pub(crate) fn may_be_shared(&self) -> bool {
        self.candidates.iter().any(|key| !is_plain_symbol(key))
    }

    /// True if both items name the same symbol.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.text.eq_ignore_ascii_case(&other.text)
            || (!self.candidates.is_empty() && self.candidates == other.candidates)
    }
}

/// Comma-separated list of distinct symbols.
#[derive(Debug, Clone, Default)]
pub(crate) struct SymbolList(pub(crate) Vec<RequestedSymbol>);

/// Columns for the look-up of symbols, one row per key: the symbol's index, and the key.
pub(crate) fn to_columns<'a>(keys: impl IntoIterator<Item = &'a Vec<String>>) -> (Vec<i32>, Vec<&'a str>) {
    let rows = keys.into_iter().zip(0i32..);
    rows.flat_map(|(keys, place)| keys.iter().map(move |key| (place, key.as_str()))).unzip()
}

impl SymbolList {
    /// Columns for the look-up of all symbols, one row per spelling: the symbol's index in the list, and the spelling.
    pub(crate) fn to_columns(&self) -> (Vec<i32>, Vec<&str>) {
        to_columns(self.0.iter().map(|symbol| &symbol.candidates))
    }
}

impl ParameterReader<'_> {
    /// Reads the path segment `{symbol}`.
    pub(crate) fn read_symbol(&mut self) -> RequestedSymbol {
        let mut text = self.read_path("symbol");
        self.describe(
            "symbol",
            "Ticker symbol in any common spelling (BRK.B, BRK-B, brk.b, BRK%2FB), or identifier: US1912161007,\n\
             isin:US1912161007, figi:BBG000BMX289, cusip:191216100. @XNYS selects the listing of a market: KO@XNYS.",
        );
        let parsed = RequestedSymbol::parse("symbol", &text);
        if let Some((end, _)) = text.char_indices().nth(64) {
            text.truncate(end);
        }
        match parsed {
            Ok(symbol) => RequestedSymbol { text, ..symbol },
            Err(error) => {
                self.add_error("symbol", error.to_string(), None);
                RequestedSymbol { text, candidates: Vec::new(), parameter: "symbol" }
            }
        }
    }

    /// Reads the list `symbols`. Repeated symbols are dropped. More than `most` distinct symbols are an error.
    pub(crate) fn read_symbols(&mut self, most: usize) -> Option<SymbolList> {
        let item = || json!({ "type": "string", "minLength": 1, "maxLength": MAX_LENGTH, "pattern": ITEM });
        let schema = || json!({ "type": "array", "minItems": 1, "maxItems": most, "items": item() });
        let text = self.read_value("symbols", schema)?;
        let mut list: Vec<RequestedSymbol> = Vec::new();
        for item in text.split(',').map(str::trim) {
            let error = match RequestedSymbol::parse_item("symbols", item) {
                Ok(Some(symbol)) => {
                    if !list.iter().any(|known| known.is_same(&symbol)) {
                        list.push(symbol);
                    }
                    continue;
                }
                Ok(None) => format!("has an item that is not 1 to {MAX_LENGTH} ASCII characters"),
                Err(error) => format!("has an item {item:?} that {error}"),
            };
            self.add_error("symbols", error, None);
            return None;
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
