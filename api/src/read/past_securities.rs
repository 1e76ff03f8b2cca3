//! Security at an earlier data version, and the caches of its derivation: the benchmark's monthly returns, and the log
//! positions of record batches.

use std::sync::{Arc, OnceLock};

use chrono::NaiveDate;
use market::identity::Identity;
use market::metrics::{DerivedRows, MonthlyReturns};
use quick_cache::sync::Cache;
use store::ids::JournalPosition;
use store::past_facts::BatchIndex;
use store::view::{BatchId, LoggedBatch};

/// Security at an earlier data version.
#[derive(Debug)]
pub(crate) struct PastSecurity {
    pub(crate) identity: Identity,
    pub(crate) rows: DerivedRows,
}

impl PastSecurity {
    /// Canonical symbol.
    pub(crate) fn symbol(&self) -> &str {
        self.identity.symbol.as_str()
    }

    /// Number of quarantined rows of a kind, for example `dividend`.
    pub(crate) fn count_quarantined(&self, kind: &str) -> i64 {
        self.rows.quarantined.iter().filter(|row| row.kind == kind).map(|_| 1).sum()
    }
}

/// Monthly returns of the benchmark. The key is the journal position of the data version, and the date for which the
/// metrics are calculated. The value is `None` if the data version has no benchmark.
pub(crate) type BenchmarkCache = Cache<(JournalPosition, NaiveDate), Arc<Option<MonthlyReturns>>>;

/// Maximum number of entries in the cache. An entry with thirty years of monthly returns takes about 10 kB.
pub(super) const MAX_BENCHMARKS: usize = 256;

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
