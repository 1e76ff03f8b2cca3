//! Former generations: another generation was promoted, but the tables of the former generation are not dropped yet.
//! These tables contain the last data version of the former generation. A request can name it in `data_version`.

use std::fmt;
use std::sync::Arc;

use store::ids::GenerationId;
use tokio::sync::Mutex;

use super::lookup::run_query;
use super::read_source::{ConnectionSettings, SharedReadState};
use super::{DataVersion, QueryError, ServedGeneration};
use crate::parameters::served_rules::ServedRules;

const VERSION: &str = include_str!("../../queries/projection/version.sql");
const EXISTS: &str = "select id from generations where id = $1";
/// Maximum number of former generations with open connections.
const MAX_OPEN: usize = 2;

/// Former generations in the primary database. Connections to a former generation are opened when a request first reads
/// it.
pub(super) struct KeptGenerations {
    settings: ConnectionSettings,
    shared: Arc<SharedReadState>,
    /// Former generations with open connections, the most recently used last.
    open: Mutex<Vec<Arc<ServedGeneration>>>,
}

impl fmt::Debug for KeptGenerations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptGenerations").field("open", &self.open).finish_non_exhaustive()
    }
}

impl KeptGenerations {
    pub(super) fn new(settings: ConnectionSettings, shared: Arc<SharedReadState>) -> Self {
        Self { settings, shared, open: Mutex::default() }
    }

    /// Opens the former generation `id` in the primary database. Returns `None` if it was dropped or cannot be read. A
    /// connection of the generation `served` is used for this check.
    pub(super) async fn find(
        &self,
        served: &ServedGeneration,
        id: GenerationId,
    ) -> Option<Arc<ServedGeneration>> {
        // Check the existence first: no connection to a dropped generation may be opened.
        run_query(served, EXISTS, &[&id]).await.ok()?.first()?;
        let mut open = self.open.lock().await;
        let known = open.iter().position(|generation| generation.id == id).map(|place| open.remove(place));
        let generation = match known {
            Some(generation) => generation,
            None => self.settings.open_generation(id, &self.shared.tasks, &self.shared.answered).ok()?,
        };
        learn_version(&generation).await.ok()?;
        open.push(Arc::clone(&generation));
        if open.len() > MAX_OPEN {
            open.remove(0);
        }
        Some(generation)
    }
}

async fn learn_version(generation: &ServedGeneration) -> Result<(), QueryError> {
    let rows = run_query(generation, VERSION, &[]).await?;
    let row = rows.first().ok_or(QueryError::Unversioned(generation.id))?;
    generation.record_known_version(DataVersion::from_row(row)?);
    generation.set_served_rules(ServedRules::from_row(row)?);
    Ok(())
}
