//! In-memory table of all securities, for lists and screeners.
//!
//! Invariant: rows and version come from one snapshot. For a newer version, the whole table is loaded again.

use market::row::{StockFigures, StockRow};
use store::FromRow;

use crate::read::{DataVersion, QueryError, ServedGeneration, lookup};

const LIST: &str = include_str!("../../../queries/stocks/list.sql");

/// List row of a security, and its figures for filters and sorting.
#[derive(Debug, Clone)]
pub(crate) struct SecurityRow {
    pub(crate) stock: StockRow,
    pub(crate) figures: StockFigures,
}

/// All securities of one version, sorted by symbol.
#[derive(Debug)]
pub(crate) struct StockTable {
    pub(crate) version: DataVersion,
    pub(crate) securities: Vec<SecurityRow>,
}

impl StockTable {
    /// Reads all securities in one statement.
    pub(super) async fn load(generation: &ServedGeneration) -> Result<Self, QueryError> {
        let rows = lookup::run_query(generation, LIST, &[]).await?;
        let version =
            DataVersion::from_row(rows.first().ok_or_else(|| lookup::missing_version_error(generation))?)?;
        let present =
            rows.iter().filter(|row| matches!(row.try_get::<_, Option<&str>>("symbol"), Ok(Some(_))));
        let member =
            |row| Ok(SecurityRow { stock: StockRow::from_row(row)?, figures: StockFigures::from_row(row)? });
        let mut securities = present.map(member).collect::<Result<Vec<_>, tokio_postgres::Error>>()?;
        // The database collation may differ from byte order.
        securities.sort_by(|a, b| a.stock.symbol.cmp(&b.stock.symbol));
        Ok(Self { version, securities })
    }
}
