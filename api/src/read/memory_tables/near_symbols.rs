//! Securities whose symbol or name is similar to an unknown symbol.

use std::cmp::Reverse;

use market::row::StockRow;
use serde::Serialize;
use utoipa::ToSchema;

use super::{EtfTable, StockTable};

/// Maximum number of suggested securities.
const SUGGESTED: usize = 5;
/// Maximum length in bytes of a text that is compared. All tickers are shorter.
const LONGEST: usize = 24;
/// Minimum length in bytes of a text that is compared with the words of names.
const WORD: usize = 3;

/// Security that a client may have meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct NearSymbol {
    /// Canonical ticker.
    pub(crate) symbol: String,
    /// Name of the company or fund.
    pub(crate) name: String,
    /// Market identifier code of the primary listing.
    pub(crate) exchange: Option<String>,
    /// True if the security still trades.
    pub(crate) is_active: bool,
}

impl StockTable {
    /// Securities that are similar to an unknown symbol, the most similar first.
    pub(crate) fn near_symbols(&self, text: &str) -> Vec<NearSymbol> {
        near_symbols(self.rows.iter().map(|row| &row.stock), text)
    }
}

impl EtfTable {
    /// Funds that are similar to an unknown symbol, the most similar first.
    pub(crate) fn near_symbols(&self, text: &str) -> Vec<NearSymbol> {
        near_symbols(self.rows.iter().map(|row| &row.listed), text)
    }
}

/// Finds securities with a similar symbol, or with a name in which a word begins with the text. Active and large
/// securities are first among equally similar ones.
fn near_symbols<'a>(stocks: impl Iterator<Item = &'a StockRow>, text: &str) -> Vec<NearSymbol> {
    let text = text.trim().to_ascii_uppercase();
    if text.is_empty() || text.len() > LONGEST {
        return vec![];
    }
    let mut near: Vec<_> = stocks
        .filter_map(|stock| {
            let errors = count_errors(&text, &stock.symbol, &stock.name)?;
            Some((errors, !stock.is_active, Reverse(stock.reporting_market_cap), &stock.symbol, stock))
        })
        .collect();
    near.sort_unstable_by(|a, b| (a.0, a.1, a.2, a.3).cmp(&(b.0, b.1, b.2, b.3)));
    let suggestion = |stock: &StockRow| NearSymbol {
        symbol: stock.symbol.clone(),
        name: stock.name.clone(),
        exchange: stock.exchange.clone(),
        is_active: stock.is_active,
    };
    near.into_iter().take(SUGGESTED).map(|(.., stock)| suggestion(stock)).collect()
}

/// Number of typing errors that separate the text from a symbol, at most 1 for short symbols and 2 for others. A word of
/// the name that begins with the text counts as one error. `None` if the security is not similar.
fn count_errors(text: &str, symbol: &str, name: &str) -> Option<usize> {
    let most = if text.len() <= 4 { 1 } else { 2 };
    if symbol.len().abs_diff(text.len()) <= most {
        let errors = strsim::osa_distance(text, symbol);
        if (1..=most).contains(&errors) {
            return Some(errors);
        }
    }
    let begins = |word: &str| word.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text));
    (text.len() >= WORD && symbol != text && name.split(' ').any(begins)).then_some(1)
}

#[cfg(test)]
mod tests {
    use super::count_errors;

    #[test]
    fn a_mistyped_symbol_or_the_beginning_of_a_name_is_near() {
        for (text, symbol, name, errors) in [
            ("APPL", "AAPL", "Apple Inc", Some(1)),
            ("MSTF", "MSFT", "Microsoft", Some(1)),
            ("GOGL", "GOOGL", "Alphabet", Some(1)),
            ("TESLA", "TSLA", "Tesla Inc", Some(1)),
            ("BRK.BB", "BRK.B", "Berkshire", Some(1)),
            ("NOPE", "NO", "Nothing", None),
            ("KO", "KO", "Coca-Cola", None),
            ("COCA", "KO", "The Coca-Cola Co", Some(1)),
            ("IN", "AAPL", "Apple Inc", None),
            ("Ä", "A", "Agilent", Some(1)),
        ] {
            assert_eq!(count_errors(text, symbol, name), errors, "{text} {symbol}");
        }
    }
}
