//! In-memory list rows of all securities.
//!
//! Invariant: rows and version come from one snapshot. A newer version replaces all of them.

use market::row::{StockFigures, StockRow};
use store::FromRow;

use crate::read::ReadError;
use crate::read::lookup;
use crate::read::projection::{Generation, Version};

const LIST: &str = include_str!("../../../queries/stocks/list.sql");

#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) stock: StockRow,
    pub(crate) figures: StockFigures,
}

/// All securities of one version, by symbol.
#[derive(Debug)]
pub(crate) struct Universe {
    pub(crate) version: Version,
    pub(crate) members: Vec<Member>,
}

impl Universe {
    /// Reads all securities in one statement.
    pub(super) async fn load(generation: &Generation) -> Result<Self, ReadError> {
        let rows = lookup::query(generation, LIST, &[]).await?;
        let version = Version::of(rows.first().ok_or_else(|| lookup::unversioned(generation))?)?;
        let present =
            rows.iter().filter(|row| matches!(row.try_get::<_, Option<&str>>("symbol"), Ok(Some(_))));
        let member =
            |row| Ok(Member { stock: StockRow::from_row(row)?, figures: StockFigures::from_row(row)? });
        let mut members = present.map(member).collect::<Result<Vec<_>, tokio_postgres::Error>>()?;
        // The database collation may differ from byte order.
        members.sort_by(|a, b| a.stock.symbol.cmp(&b.stock.symbol));
        Ok(Self { version, members })
    }
}
