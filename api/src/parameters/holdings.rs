//! Holdings of a portfolio: `SYMBOL:SHARES` or `SYMBOL:SHARES:COST`, comma-separated.

use market::identity::split_address;
use rust_decimal::Decimal;
use serde_json::json;

use super::ParameterReader;
use super::symbols::{RequestedSymbol, SymbolList};

const MAX_HOLDINGS: usize = 100;
/// Maximum length of a holding, in characters.
const MAX_LENGTH: usize = 64;
/// Maximum number of shares of a holding, and maximum cost in units of the currency.
const MAX_NUMBER: i64 = 1_000_000_000;
/// Maximum decimal places of shares and cost.
const PLACES: u32 = 6;
/// Regular expression of a holding.
const ITEM: &str =
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
        let item = || json!({ "type": "string", "minLength": 3, "maxLength": MAX_LENGTH, "pattern": ITEM });
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
        let shown = || item.chars().take(MAX_LENGTH).collect();
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
