//! In-memory list of all active ETFs.

use market::row::EtfRow;

use crate::read::{DataVersion, QueryError, ServedGeneration, lookup};

const LIST: &str = include_str!("../../../queries/etfs/list.sql");

/// All active ETFs of one version.
#[derive(Debug)]
pub(crate) struct EtfTable {
    pub(crate) version: DataVersion,
    pub(crate) rows: Vec<EtfRow>,
}

impl EtfTable {
    /// Reads all funds in one statement.
    pub(super) async fn load(generation: &ServedGeneration) -> Result<Self, QueryError> {
        let rows = lookup::run_query(generation, LIST, &[]).await?;
        let version =
            DataVersion::from_row(rows.first().ok_or_else(|| lookup::missing_version_error(generation))?)?;
        Ok(Self { version, rows: lookup::rows_with_symbol(&rows)? })
    }
}
