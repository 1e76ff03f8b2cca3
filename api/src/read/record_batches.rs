//! Cache of the log positions of record batches. A record batch is part of one log message, and can contain rows of
//! many securities. To derive a security at an earlier data version, the program needs the position of every batch that
//! contains rows of the security.
//!
//! Daily prices of thirty years come from thousands of batches. Most securities have rows in the same batches.

use std::sync::{Arc, OnceLock};

use quick_cache::sync::Cache;
use store::past_facts::{BatchId, BatchIndex, LoggedBatch};

/// Maximum number of cached batches, about 100 bytes each.
const MAX_BATCHES: usize = 65_536;

/// Cached log positions of the record batches of one fact set. The position of a batch never changes.
#[derive(Debug)]
pub(crate) struct RecordBatches {
    /// Fact set of the first request. Only batches of this fact set are cached, because requests for other fact sets
    /// are rare.
    fact_set: OnceLock<String>,
    places: Cache<BatchId, LoggedBatch>,
}

/// View of the cache for one fact set. If `is_cached` is false, the cache belongs to another fact set and is not used.
#[derive(Debug)]
pub(crate) struct FactSetBatches {
    batches: Arc<RecordBatches>,
    is_cached: bool,
}

impl RecordBatches {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { fact_set: OnceLock::new(), places: Cache::new(MAX_BATCHES) })
    }

    /// View of the cache for a fact set.
    pub(crate) fn of_fact_set(self: &Arc<Self>, name: &str) -> FactSetBatches {
        let is_cached = self.fact_set.get_or_init(|| name.to_owned()) == name;
        FactSetBatches { batches: Arc::clone(self), is_cached }
    }
}

impl BatchIndex for FactSetBatches {
    fn find(&self, batch: &BatchId) -> Option<LoggedBatch> {
        if self.is_cached { self.batches.places.get(batch) } else { None }
    }

    fn insert(&self, batch: BatchId, place: LoggedBatch) {
        if self.is_cached {
            self.batches.places.insert(batch, place);
        }
    }
}
