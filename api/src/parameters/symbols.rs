//! Addresses of securities in paths and lists: symbols in any vendor's spelling, identifiers, and markets.
//!
//! Holdings of a portfolio: `SYMBOL:SHARES` or `SYMBOL:SHARES:COST`, comma-separated.

use market::identity::{AddressError, SecurityAddress, is_plain_symbol, split_address};
use rust_decimal::Decimal;
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

const MAX_HOLDINGS: usize = 100;
/// Maximum length of a holding, in characters.
const MAX_HOLDING_LENGTH: usize = 64;
/// Maximum number of shares of a holding, and maximum cost in units of the currency.
const MAX_NUMBER: i64 = 1_000_000_000;
/// Maximum decimal places of shares and cost.
const PLACES: u32 = 6;
/// Regular expression of a holding.
const HOLDING_ITEM: &str =
    r"^([A-Za-z]{4,5}:)?[A-Za-z0-9^./@ -]{1,24}:[0-9]{1,9}(\.[0-9]{1,6})?(:[0-9]{1,9}(\.[0-9]{1,6})?)?$";

/// Shares of one security, with their cost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Holding {
    /// Number of shares, above 0.
    pub(crate) shares: Decimal,
    /// Purchase cost of all shares, in the currency of the price; `None` if unknown.
    pub(crate) cost: Option<Decimal>,
}

impl Holding {
    /// Adds another lot of the same security. The total cost is known only if every lot has a cost.
    pub(crate) fn add(&mut self, lot: &Holding) {
        self.shares += lot.shares;
        self.cost = self.cost.zip(lot.cost).map(|(known, added)| known + added);
    }
}

/// Holdings by symbol, in request order.
#[derive(Debug, Clone, Default)]
pub(crate) struct HoldingList {
    /// Distinct symbols.
    pub(crate) symbols: SymbolList,
    /// Holdings, one for each symbol.
    pub(crate) holdings: Vec<Holding>,
}

impl ParameterReader<'_> {
    /// Reads `holdings`, which is required.
    pub(crate) fn read_holdings(&mut self) -> HoldingList {
        let item = || json!({ "type": "string", "minLength": 3, "maxLength": MAX_HOLDING_LENGTH, "pattern": HOLDING_ITEM });
        let schema = || json!({ "type": "array", "minItems": 1, "maxItems": MAX_HOLDINGS, "items": item() });
        let text = self.read_value("holdings", schema);
        self.require_given("holdings");
        let Some(text) = text else { return HoldingList::default() };
        parse_holdings(&text).unwrap_or_else(|error| {
            let maximum = matches!(error, HoldingsError::TooMany).then(|| json!({ "maximum": MAX_HOLDINGS }));
            self.add_error("holdings", error.to_string(), maximum);
            HoldingList::default()
        })
    }
}

/// Error in a list of holdings. Its text continues a sentence that begins with the parameter name, for example
/// "holdings has more than 100 holdings".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HoldingsError {
    #[error("has more than {MAX_HOLDINGS} holdings")]
    TooMany,
    #[error("has an item {item:?} that {cause}")]
    Item { item: String, cause: String },
}

/// Parses comma-separated holdings. If a symbol is listed more than once, its shares and its costs are added up.
pub(crate) fn parse_holdings(text: &str) -> Result<HoldingList, HoldingsError> {
    let items: Vec<&str> = text.split(',').map(str::trim).collect();
    if items.len() > MAX_HOLDINGS {
        return Err(HoldingsError::TooMany);
    }
    let mut list = HoldingList::default();
    for item in items {
        let shown = || item.chars().take(MAX_HOLDING_LENGTH).collect();
        let (symbol, holding) = parse(item).map_err(|cause| HoldingsError::Item { item: shown(), cause })?;
        list.add(symbol, &holding);
    }
    Ok(list)
}

impl HoldingList {
    fn add(&mut self, symbol: RequestedSymbol, holding: &Holding) {
        match self.symbols.0.iter().position(|known| known.is_same(&symbol)) {
            Some(place) => self.holdings[place].add(holding),
            None => {
                self.symbols.0.push(symbol);
                self.holdings.push(holding.clone());
            }
        }
    }
}

/// Parses `SYMBOL:SHARES` or `SYMBOL:SHARES:COST`.
fn parse(item: &str) -> Result<(RequestedSymbol, Holding), String> {
    let (address, numbers) = split_address(item);
    let symbol =
        RequestedSymbol::parse_item("holdings", address.trim()).map_err(|error| error.to_string())?;
    let symbol = symbol.ok_or("has no symbol of 1 to 24 characters")?;
    let mut parts = numbers.into_iter().flat_map(|numbers| numbers.split(':')).map(str::trim);
    let shares = parts.next().and_then(quantity).filter(|shares| !shares.is_zero());
    let shares = shares.ok_or("has no number of shares, such as KO:120")?;
    let cost =
        parts.next().map(|text| quantity(text).ok_or("has a cost that is not a number")).transpose()?;
    if parts.next().is_some() {
        return Err("has more than a symbol, shares and a cost".to_owned());
    }
    Ok((symbol, Holding { shares, cost }))
}

/// Parses a number from 0 to [`MAX_NUMBER`], with at most [`PLACES`] decimal places.
fn quantity(text: &str) -> Option<Decimal> {
    let is_plain = text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.'));
    let number: Decimal = text.parse().ok().filter(|_| is_plain)?;
    let number = number.normalize();
    (number.scale() <= PLACES && number <= Decimal::from(MAX_NUMBER)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(item: &str, expected: Option<(&str, &str, Option<&str>)>) {
        let number = |text: &str| text.parse::<Decimal>().expect("a number");
        let expected = expected.map(|(symbol, shares, cost)| {
            (symbol.to_owned(), Holding { shares: number(shares), cost: cost.map(number) })
        });
        assert_eq!(parse(item).ok().map(|(symbol, holding)| (symbol.text, holding)), expected, "{item}");
    }

    #[test]
    fn a_holding_is_a_symbol_with_shares_and_perhaps_a_cost() {
        check("KO:120", Some(("KO", "120", None)));
        check("BRK.B:1.5:640.25", Some(("BRK.B", "1.5", Some("640.25"))));
        check("KO:120:0", Some(("KO", "120", Some("0"))));
        check("isin:US1912161007:120:640", Some(("isin:US1912161007", "120", Some("640"))));
        check("KO@XNYS:120", Some(("KO@XNYS", "120", None)));
        for item in [
            "KO",
            "KO:",
            "KO:0",
            "KO:-1",
            "KO:1e3",
            ":5",
            "KO:1:2:3",
            "KO:1:x",
            "isin:US1912161008:1",
            "isin:1",
            "KO:1.1234567",
            "KO:1000000001",
        ] {
            check(item, None);
        }
    }
}
