//! In-memory tables of all securities and of all active ETFs, for lists and screeners, and the searchable names.
//!
//! Securities whose symbol or name is similar to an unknown symbol.
//!
//! Invariant: rows and version come from one snapshot. For a newer version, the whole table is loaded again.

use std::cmp::Reverse;
use std::collections::HashMap;

use market::row::{EtfRow, StockFigures, StockRow};
use serde::Serialize;
use store::FromRow;
use tokio_postgres::Row;
use utoipa::ToSchema;

use crate::parameters::facets::trigrams;
use crate::read::{DataVersion, QueryError, ServedGeneration, lookup};

const STOCKS: &str = include_str!("../../../queries/stocks/list.sql");
const ETFS: &str = include_str!("../../../queries/etfs/list.sql");

/// Row of a security in a list, and the figures by which lists filter and sort the security.
#[derive(Debug, Clone)]
pub(crate) struct SecurityRow {
    pub(crate) stock: StockRow,
    pub(crate) figures: StockFigures,
}

impl FromRow for SecurityRow {
    fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self { stock: StockRow::from_row(row)?, figures: StockFigures::from_row(row)? })
    }
}

/// All rows of a table at one data version.
#[derive(Debug)]
pub(crate) struct ListTable<T> {
    pub(crate) version: DataVersion,
    pub(crate) rows: Vec<T>,
}

/// All securities, sorted by symbol.
pub(crate) type StockTable = ListTable<SecurityRow>;
/// All active ETFs.
pub(crate) type EtfTable = ListTable<EtfRow>;

impl<T: FromRow> ListTable<T> {
    async fn read(generation: &ServedGeneration, statement: &str) -> Result<Self, QueryError> {
        let rows = lookup::run_query(generation, statement, &[]).await?;
        let version = DataVersion::from_row(lookup::first_row(generation, &rows)?)?;
        Ok(Self { version, rows: lookup::rows_with_symbol(&rows)? })
    }
}

impl StockTable {
    /// Reads all securities in one statement.
    pub(super) async fn load(generation: &ServedGeneration) -> Result<Self, QueryError> {
        let mut table = Self::read(generation, STOCKS).await?;
        // The rows are sorted by bytes, because the database collation may have another order.
        table.rows.sort_by(|a, b| a.stock.symbol.cmp(&b.stock.symbol));
        Ok(table)
    }
}

impl EtfTable {
    /// Reads all active ETFs in one statement.
    pub(super) async fn load(generation: &ServedGeneration) -> Result<Self, QueryError> {
        Self::read(generation, ETFS).await
    }
}

const NAMES: &str = include_str!("../../../queries/search/names.sql");

/// Searchable names of all securities, by symbol.
#[derive(Debug)]
pub(crate) struct NameIndex {
    by_symbol: HashMap<String, SearchNames>,
}

/// Searchable names of one security.
#[derive(Debug)]
pub(crate) struct SearchNames {
    pub(crate) isin: Option<String>,
    pub(crate) former_symbols: Vec<String>,
    /// Name in lower case.
    pub(crate) name: String,
    /// Sorted trigrams of the name.
    pub(crate) trigrams: Vec<u32>,
}

impl NameIndex {
    /// Reads ISINs and former symbols in one statement, and takes the names from `securities`.
    pub(super) async fn load(
        generation: &ServedGeneration,
        securities: &[SecurityRow],
    ) -> Result<Self, QueryError> {
        let names: HashMap<&str, &str> =
            securities.iter().map(|m| (m.stock.symbol.as_str(), m.stock.name.as_str())).collect();
        let mut by_symbol = HashMap::new();
        for row in lookup::run_query(generation, NAMES, &[]).await? {
            let Some(symbol) = row.try_get::<_, Option<String>>("symbol")? else { continue };
            let name = names.get(symbol.as_str()).copied().unwrap_or_default().to_lowercase();
            let trigrams = trigrams(&name);
            let known = SearchNames {
                isin: row.try_get("isin")?,
                former_symbols: row.try_get("former_symbols")?,
                name,
                trigrams,
            };
            by_symbol.insert(symbol, known);
        }
        Ok(Self { by_symbol })
    }

    /// Searchable names of the security with this symbol.
    pub(crate) fn get(&self, symbol: &str) -> Option<&SearchNames> {
        self.by_symbol.get(symbol)
    }
}

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
