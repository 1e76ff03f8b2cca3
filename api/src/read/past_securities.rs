//! Caches for answers at earlier data versions: derived securities, the benchmark's monthly returns, and the log positions
//! of record batches.

use std::sync::{Arc, OnceLock};

use chrono::NaiveDate;
use foldhash::fast::RandomState;
use market::identity::Identity;
use market::metrics::{DerivedRows, MonthlyReturns};
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};
use store::ids::JournalPosition;
use store::past_facts::BatchIndex;
use store::view::{BatchId, LoggedBatch};

/// Capacity of the cache, in bytes. A security with thirty years of daily bars takes about half a megabyte.
const CAPACITY: u64 = 32 * 1024 * 1024;
/// Estimated number of entries. It determines how many evicted keys the cache remembers.
const ENTRIES: usize = 1_024;
/// Approximate size in memory of one security without its bars, dividends and splits, in bytes. `BAR` is the size of
/// one bar, and `EVENT` is the size of one dividend or split.
const SECURITY: usize = 8 * 1024;
const BAR: usize = 64;
const EVENT: usize = 512;

/// Security at an earlier data version.
#[derive(Debug)]
pub(crate) struct PastSecurity {
    pub(crate) identity: Identity,
    pub(crate) rows: DerivedRows,
}

/// Price columns that a response needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PriceColumns {
    /// Only the columns that the derivation of figures, such as yields and returns, needs. For most years, these are
    /// only the closing prices.
    ForFigures,
    /// All columns of every year.
    All,
}

/// Cache key of a derived security. The fields of the key determine the rows of the security.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PastSecurityKey {
    pub(crate) position: JournalPosition,
    pub(crate) as_of: NaiveDate,
    pub(crate) columns: PriceColumns,
    /// Spellings of the symbol in the order of the look-up, for example `BAC.L`, then `BAC.PRL` (a preferred share).
    pub(crate) spellings: Vec<String>,
}

/// Cache of derived securities at earlier data versions. The value for an unknown symbol is `None`. An entry is never
/// outdated, because a data version never changes.
pub(crate) type PastSecurityCache =
    Cache<PastSecurityKey, Option<Arc<PastSecurity>>, ByteWeigher, RandomState>;

/// Weigher that estimates the size of an entry in bytes.
#[derive(Debug, Clone)]
pub(crate) struct ByteWeigher;

impl Weighter<PastSecurityKey, Option<Arc<PastSecurity>>> for ByteWeigher {
    fn weight(&self, _: &PastSecurityKey, security: &Option<Arc<PastSecurity>>) -> u64 {
        let rows = security.as_ref().map(|security| &security.rows);
        let rows = rows
            .map_or(0, |rows| rows.bars.day.len() * BAR + (rows.dividends.len() + rows.splits.len()) * EVENT);
        (SECURITY + rows) as u64
    }
}

/// Creates an empty cache.
pub(super) fn new_cache() -> PastSecurityCache {
    Cache::with(ENTRIES, CAPACITY, ByteWeigher, RandomState::default(), DefaultLifecycle::default())
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
