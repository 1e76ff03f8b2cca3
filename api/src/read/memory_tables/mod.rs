//! In-memory tables for lists with arbitrary filters and sort keys, and for counts over all securities. Concurrent requests
//! for a data version load its table once.
//!
//! Securities that rest on a source which must not be redistributed. Bulk responses, and pages for readers without an
//! account, leave them out.

mod list_table;
mod quality;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;
use store::ids::{GenerationId, JournalPosition};
use tokio::sync::OnceCell;
use utoipa::ToSchema;

use super::data_version::ControlState;
use super::{QueryError, ServedGeneration, lookup};
use crate::parameters::facets::{FacetIndex, FilterField};

pub(crate) use list_table::{EtfTable, NameIndex, NearSymbol, SearchNames, SecurityRow, StockTable};
pub(crate) use quality::{FeedAge, FeedCount, FlagCount, HeldRowCount, QualityTables};

const FILTER_NAMES: &str = include_str!("../../../queries/filters/names.sql");

/// In-memory tables of all lists.
#[derive(Debug, Default)]
pub(crate) struct MemoryTables {
    stocks: VersionedCache<StockTable>,
    names: VersionedCache<NameIndex>,
    etfs: VersionedCache<EtfTable>,
    facet_indexes: VersionedCache<FacetIndex>,
    quality: VersionedCache<QualityTables>,
    restricted: VersionedCache<RestrictedSecurities>,
}

impl MemoryTables {
    /// Table of all securities, at the newest known data version of the generation.
    pub(crate) async fn stocks(&self, generation: &ServedGeneration) -> Result<Arc<StockTable>, QueryError> {
        self.stocks.get(generation, || StockTable::load(generation)).await
    }

    /// Searchable names of the securities in `stock_table`.
    pub(crate) async fn names(
        &self,
        generation: &ServedGeneration,
        stock_table: &StockTable,
    ) -> Result<Arc<NameIndex>, QueryError> {
        self.names.get(generation, || NameIndex::load(generation, &stock_table.rows)).await
    }

    /// Table of all active funds, at the newest known data version of the generation.
    pub(crate) async fn etfs(&self, generation: &ServedGeneration) -> Result<Arc<EtfTable>, QueryError> {
        self.etfs.get(generation, || EtfTable::load(generation)).await
    }

    /// Names that filters accept, for example sector names, at the newest known data version of the generation.
    pub(crate) async fn facet_index(
        &self,
        generation: &ServedGeneration,
    ) -> Result<Arc<FacetIndex>, QueryError> {
        self.facet_indexes.get(generation, || load_facet_index(generation)).await
    }

    /// Counts that describe the quality of the data, at the newest known data version of the generation.
    pub(crate) async fn quality(
        &self,
        generation: &ServedGeneration,
    ) -> Result<Arc<QualityTables>, QueryError> {
        self.quality.get(generation, || QualityTables::load(generation)).await
    }

    /// Securities that rest on a source which must not be redistributed, at the newest known data version of the
    /// generation.
    pub(crate) async fn restricted(
        &self,
        generation: &ServedGeneration,
    ) -> Result<Arc<RestrictedSecurities>, QueryError> {
        if !generation.control_state().restricts {
            return Ok(Arc::default());
        }
        self.restricted.get(generation, || RestrictedSecurities::load(generation)).await
    }
}

/// Reads the names that filters accept, in one statement.
async fn load_facet_index(generation: &ServedGeneration) -> Result<FacetIndex, QueryError> {
    let mut facet_index = FacetIndex::default();
    for row in lookup::run_query(generation, FILTER_NAMES, &[]).await? {
        let field: Option<FilterField> = row.try_get("field")?;
        if let Some(field) = field {
            facet_index.insert(field, row.try_get("name")?);
        }
    }
    Ok(facet_index)
}

/// Number of cached versions: the newest version and the previous version. Requests in progress may still use the
/// previous version.
const KEPT: usize = 2;

/// Cache key of a data version: generation, log sequence, journal position and state of the control tables.
type VersionKey = (GenerationId, i64, JournalPosition, ControlState);
type PendingLoad<T> = Arc<OnceCell<Result<Arc<T>, QueryError>>>;

/// Cache with one value per data version. A value is loaded at its first use. The two values that were loaded last stay
/// in the cache.
#[derive(Debug)]
pub(crate) struct VersionedCache<T>(Mutex<VecDeque<(VersionKey, PendingLoad<T>)>>);

impl<T> Default for VersionedCache<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> VersionedCache<T> {
    /// Value for the newest data version of the generation. Concurrent requests share one call of `load`. If this call
    /// fails, all these requests get the error.
    pub(crate) async fn get<F: Future<Output = Result<T, QueryError>>>(
        &self,
        generation: &ServedGeneration,
        load: impl FnOnce() -> F,
    ) -> Result<Arc<T>, QueryError> {
        let version = generation.version();
        self.at((generation.id, version.sequence, version.position, generation.control_state()), load).await
    }

    async fn at<F: Future<Output = Result<T, QueryError>>>(
        &self,
        key: VersionKey,
        load: impl FnOnce() -> F,
    ) -> Result<Arc<T>, QueryError> {
        let loading = self.loading(key);
        // Boxed, because the future of every reader would reserve the space for the rare load.
        let load = || Box::pin(async { load().await.map(Arc::new) });
        let loaded = loading.get_or_init(load).await.clone();
        if loaded.is_err() {
            self.0.lock().retain(|(_, kept)| !Arc::ptr_eq(kept, &loading));
        }
        loaded
    }

    fn loading(&self, key: VersionKey) -> PendingLoad<T> {
        let mut kept = self.0.lock();
        if let Some((_, loading)) = kept.iter().find(|(known, _)| *known == key) {
            return Arc::clone(loading);
        }
        let loading = PendingLoad::default();
        kept.push_front((key, Arc::clone(&loading)));
        kept.truncate(KEPT);
        loading
    }
}

const LEFT_OUT: &str = include_str!("../../../queries/sources/left_out.sql");

/// Data that must not be redistributed.
#[derive(Debug, Default)]
pub(crate) struct RestrictedSecurities {
    /// Securities to leave out, by each of their symbols, with the sources that must not be redistributed.
    securities: BTreeMap<String, Vec<String>>,
    /// Sources of exchange rates that must not be redistributed.
    rate_sources: Vec<String>,
}

/// Securities that a response leaves out.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct LeftOut {
    /// Sources of these securities that must not be redistributed. `/v1/sources` has their licences.
    pub(crate) sources: Vec<String>,
    /// Canonical tickers of the securities.
    pub(crate) symbols: Vec<String>,
}

impl RestrictedSecurities {
    pub(super) async fn load(generation: &ServedGeneration) -> Result<Self, QueryError> {
        let mut restricted = Self::default();
        for row in lookup::run_query(generation, LEFT_OUT, &[]).await? {
            let sources = row.try_get("sources")?;
            match row.try_get("symbol")? {
                Some(symbol) => drop(restricted.securities.insert(symbol, sources)),
                None => restricted.rate_sources = sources,
            }
        }
        Ok(restricted)
    }

    /// True if no security must be left out.
    pub(crate) fn is_empty(&self) -> bool {
        self.securities.is_empty()
    }

    pub(crate) fn contains(&self, symbol: &str) -> bool {
        self.securities.contains_key(symbol)
    }

    /// Sources of exchange rates that must not be redistributed.
    pub(crate) fn rate_sources(&self) -> &[String] {
        &self.rate_sources
    }

    /// True if a security rests on this source, which must not be redistributed.
    pub(crate) fn has_source(&self, source: &str) -> bool {
        self.securities.values().flatten().any(|name| name == source)
    }

    /// Description of the securities that a response leaves out; `None` without any.
    pub(crate) fn describe(&self, symbols: BTreeSet<String>) -> Option<LeftOut> {
        let sources: BTreeSet<&String> =
            symbols.iter().filter_map(|symbol| self.securities.get(symbol)).flatten().collect();
        let sources = sources.into_iter().cloned().collect();
        (!symbols.is_empty()).then(|| LeftOut { sources, symbols: symbols.into_iter().collect() })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Counter of loads. Each call of `load` returns its number, from 1.
    #[derive(Default)]
    struct Loads(AtomicU32);

    impl Loads {
        async fn load(&self, fails: bool) -> Result<u32, QueryError> {
            let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
            // Concurrent requests can arrive here.
            tokio::task::yield_now().await;
            if fails { Err(QueryError::QueueFull) } else { Ok(number) }
        }
    }

    #[tokio::test]
    async fn a_version_is_loaded_once_however_many_ask_and_the_last_two_are_kept() {
        let (values, loads) = (VersionedCache::default(), Loads::default());
        let ask = |sequence| {
            values.at((GenerationId(1), sequence, JournalPosition(0), ControlState::default()), || {
                loads.load(false)
            })
        };
        let (a, b, c) = tokio::join!(ask(1), ask(1), ask(1));
        assert_eq!([a, b, c].map(|value| *value.unwrap()), [1, 1, 1]);
        for (sequence, loaded) in [(1, 1), (2, 2), (1, 1), (3, 3), (2, 2), (1, 4)] {
            assert_eq!(*ask(sequence).await.unwrap(), loaded, "version {sequence}");
        }
    }

    #[tokio::test]
    async fn a_failure_is_told_to_all_who_wait_and_not_kept() {
        let (values, loads) = (VersionedCache::default(), &Loads::default());
        let ask = |fails| {
            values.at((GenerationId(1), 1, JournalPosition(0), ControlState::default()), move || {
                loads.load(fails)
            })
        };
        let (a, b) = tokio::join!(ask(true), ask(true));
        assert!([a, b].iter().all(|value| matches!(value, Err(QueryError::QueueFull))));
        assert_eq!(loads.0.load(Ordering::Relaxed), 1);
        assert_eq!(*ask(false).await.unwrap(), 2);
    }
}
