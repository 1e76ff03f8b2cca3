//! Securities as they were at earlier data versions, and a cache of these securities. The rows of such a security are
//! derived again from stored facts.

use std::sync::Arc;

use chrono::NaiveDate;
use foldhash::fast::RandomState;
use market::identity::Identity;
use market::metrics::DerivedRows;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};
use store::ids::JournalPosition;

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
