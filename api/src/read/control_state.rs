//! State of the tables of `control` that responses show: licences, and quality by month.

use tokio_postgres::Row;

/// State of the tables of `control` that responses show, as read with the data version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct ControlState {
    /// Number of their rows: stated licences and measured months. Both are append-only. A cached response has one
    /// revision.
    pub(crate) revision: i64,
    /// True if at least one source must not be redistributed.
    pub(crate) restricts: bool,
}

impl ControlState {
    /// Reads the columns `control_revision` and `restricts`.
    pub(crate) fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self { revision: row.try_get("control_revision")?, restricts: row.try_get("restricts")? })
    }
}
