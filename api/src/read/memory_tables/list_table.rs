//! In-memory tables of all securities and of all active ETFs, for lists and screeners.
//!
//! Invariant: rows and version come from one snapshot. For a newer version, the whole table is loaded again.

use market::row::{EtfRow, StockFigures, StockRow};
use store::FromRow;
use tokio_postgres::Row;

use crate::read::{DataVersion, QueryError, ServedGeneration, lookup};

const STOCKS: &str = include_str!("../../../queries/stocks/list.sql");
const ETFS: &str = include_str!("../../../queries/etfs/list.sql");

/// List row of a security, and its figures for filters and sorting.
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
