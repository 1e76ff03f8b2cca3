//! Cache of the log positions of record batches. A record batch is a part of one log message, with rows of many
//! securities. The derivation of an earlier data version needs the positions of all batches of a security.

use std::sync::{Arc, OnceLock};

use quick_cache::sync::Cache;
use store::past_facts::BatchIndex;
use store::view::{BatchId, LoggedBatch};

/// Maximum number of cached batches, about 100 bytes each.
const MAX_BATCHES: usize = 65_536;

/// Cached log positions of the record batches of one fact set: the tables with all facts from the log.
#[derive(Debug)]
pub(crate) struct RecordBatches {
    /// Fact set of the first request. Only batches of this fact set are cached, because requests for other fact sets
    /// are rare.
    fact_set: OnceLock<String>,
    places: Cache<BatchId, LoggedBatch>,
}

/// View of the cache for one fact set. A view with `is_cached` false neither reads nor fills the cache.
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
