//! Look-up of a data version, current or earlier, with its rules and its source policy. The source policy is the order
//! of preference of the data sources.

use std::ops::Deref;

use market::history::SourcePolicy;
use market::metrics::Rules;
use store::versions::{CURRENT_VERSION, NAMED_VERSION, ServedVersion, VERSION_AT};
use tokio_postgres::types::ToSql;

use super::lookup::run_query;
use super::{DataVersion, QueryError, ServedGeneration};
use crate::parameters::Knowledge;

/// Data version, current or earlier, with the source policy and the rules for deriving its data.
#[derive(Debug)]
pub(crate) struct PastVersion(ServedVersion);

impl Deref for PastVersion {
    type Target = ServedVersion;

    fn deref(&self) -> &ServedVersion {
        &self.0
    }
}

/// Finds the data version that the generation serves now.
pub(crate) async fn find_current_version(generation: &ServedGeneration) -> Result<PastVersion, QueryError> {
    let rows = run_query(generation, CURRENT_VERSION, &[]).await?;
    let row = rows.first().ok_or(QueryError::Unversioned(generation.id))?;
    Ok(PastVersion(ServedVersion::from_row(row)?))
}

/// Finds the version that a request asks for.
pub(crate) async fn find_version(
    generation: &ServedGeneration,
    knowledge: &Knowledge,
) -> Result<PastVersion, QueryError> {
    let rows = match knowledge {
        Knowledge::Version(name) => {
            let name: [&(dyn ToSql + Sync); 3] = [&name.generation, &name.sequence, &name.position];
            run_query(generation, NAMED_VERSION, &name).await?
        }
        Knowledge::At(instant) => run_query(generation, VERSION_AT, &[instant]).await?,
    };
    match rows.first() {
        Some(row) => Ok(PastVersion(ServedVersion::from_row(row)?)),
        None => Err(match knowledge {
            Knowledge::Version(_) => QueryError::VersionNotServed,
            Knowledge::At(instant) => QueryError::NothingKnown(*instant),
        }),
    }
}

impl PastVersion {
    /// This version in the form that is used in responses.
    pub(crate) fn version(&self) -> DataVersion {
        let ServedVersion { generation, sequence, as_of, position, is_repeated, .. } = self.0;
        DataVersion { generation, sequence, as_of, position, is_repeated }
    }

    /// True if the served tables contain this version. `served` is the version of the served tables.
    pub(crate) fn is_served_as(&self, served: &DataVersion) -> bool {
        self.is_current && self.generation == served.generation && self.position == served.position
    }

    /// Source policy and rules for deriving the data of this version.
    ///
    /// # Errors
    /// [`QueryError::VersionGone`] if this program cannot derive the version.
    pub(crate) fn inputs(&self) -> Result<&(SourcePolicy, Rules), QueryError> {
        if !self.is_current {
            self.require_reproducible()?;
        }
        self.0.inputs.as_ref().ok_or_else(|| self.gone_error())
    }

    /// Fails if this program cannot derive the version again. The rules may be of another program version, the stored
    /// inputs unreadable, or the facts deleted.
    pub(crate) fn require_reproducible(&self) -> Result<(), QueryError> {
        let is_reproducible = self.derivable().is_some() && self.has_facts;
        if is_reproducible { Ok(()) } else { Err(self.gone_error()) }
    }

    fn gone_error(&self) -> QueryError {
        QueryError::VersionGone {
            version: self.version().to_string(),
            method: self.method_version.clone(),
            program: self.program_version.clone(),
        }
    }
}
