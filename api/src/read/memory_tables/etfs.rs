//! In-memory list of all active ETFs.

use market::row::EtfRow;

use crate::read::ReadError;
use crate::read::lookup;
use crate::read::projection::{Generation, Version};

const LIST: &str = include_str!("../../../queries/etfs/list.sql");

/// All active ETFs of one version.
#[derive(Debug)]
pub(crate) struct Etfs {
    pub(crate) version: Version,
    pub(crate) rows: Vec<EtfRow>,
}

impl Etfs {
    /// Reads all funds in one statement.
    pub(super) async fn load(generation: &Generation) -> Result<Self, ReadError> {
        let rows = lookup::query(generation, LIST, &[]).await?;
        let version = Version::of(rows.first().ok_or_else(|| lookup::unversioned(generation))?)?;
        Ok(Self { version, rows: lookup::present(&rows)? })
    }
}
