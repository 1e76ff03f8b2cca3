//! Changed dividends and splits, each with the journal position of the change.

use market::row::{DividendRow, DividendStatus, SplitRow, SplitStatus};
use serde::Serialize;
use store::FromRow;
use store::ids::JournalPosition;
use tokio_postgres::Row;

/// Type of a row that has its own journal entries: a dividend or a split. All other data has journal entries per
/// security.
pub(crate) trait TrackedRow: FromRow + Serialize {
    /// Statement that selects the changed rows.
    const CHANGES: &'static str;
    fn id(&self) -> Option<&str>;
    /// Sets the status of the row to `cancelled`. A client removes a cancelled row from its copy of the data.
    fn into_cancelled(self) -> Self;
}

impl TrackedRow for DividendRow {
    const CHANGES: &'static str = include_str!("../../../queries/changes/dividends.sql");
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }
    fn into_cancelled(self) -> Self {
        Self { status: DividendStatus::Cancelled, ..self }
    }
}

impl TrackedRow for SplitRow {
    const CHANGES: &'static str = include_str!("../../../queries/changes/splits.sql");
    fn id(&self) -> Option<&str> {
        Some(&self.id)
    }
    fn into_cancelled(self) -> Self {
        Self { status: SplitStatus::Cancelled, ..self }
    }
}

/// Changed row with its journal position.
pub(crate) struct ChangedRow<T> {
    pub(crate) position: JournalPosition,
    /// `false` for a removed row.
    pub(crate) live: bool,
    pub(crate) symbol: String,
    pub(crate) row: T,
}

impl<T: TrackedRow> ChangedRow<T> {
    /// Parses the changed rows of a query result. Skips the row without a change, which contains only the data version.
    pub(crate) fn read_all(rows: &[Row]) -> Result<Vec<Self>, tokio_postgres::Error> {
        let is_change =
            |row: &&Row| matches!(row.try_get::<_, Option<JournalPosition>>("change_position"), Ok(Some(_)));
        rows.iter().filter(is_change).map(Self::read).collect()
    }

    fn read(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            position: row.try_get("change_position")?,
            live: row.try_get("change_live")?,
            symbol: row.try_get("change_symbol")?,
            row: T::from_row(row)?,
        })
    }
}
