//! In-memory tables of all securities and of all active ETFs, for lists and screeners, and the searchable names.
//!
//! Invariant: rows and version come from one snapshot. For a newer version, the whole table is loaded again.

use std::collections::HashMap;

use market::row::{EtfRow, StockFigures, StockRow};
use store::FromRow;
use tokio_postgres::Row;

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
