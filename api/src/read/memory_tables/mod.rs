//! In-memory tables for lists with arbitrary filters and sort keys, and for counts over all securities.

mod list_table;
mod quality;
mod versioned_cache;

pub(crate) use list_table::{EtfTable, NameIndex, SearchNames, SecurityRow, StockTable};
pub(crate) use quality::{FeedCount, FlagCount, HeldRowCount, QualityTables};

use std::sync::Arc;

use super::{QueryError, ServedGeneration, lookup};
use crate::parameters::facets::{FacetIndex, FilterField};
use versioned_cache::VersionedCache;

const FILTER_NAMES: &str = include_str!("../../../queries/filters/names.sql");

/// In-memory tables of all lists.
#[derive(Debug, Default)]
pub(crate) struct MemoryTables {
    stocks: VersionedCache<StockTable>,
    names: VersionedCache<NameIndex>,
    etfs: VersionedCache<EtfTable>,
    facet_indexes: VersionedCache<FacetIndex>,
    quality: VersionedCache<QualityTables>,
}

impl MemoryTables {
    /// Table of all securities, at the newest known data version of the generation.
    pub(crate) async fn stocks(&self, generation: &ServedGeneration) -> Result<Arc<StockTable>, QueryError> {
        self.stocks.get(generation, StockTable::load(generation)).await
    }

    /// Searchable names of the securities in `stock_table`.
    pub(crate) async fn names(
        &self,
        generation: &ServedGeneration,
        stock_table: &StockTable,
    ) -> Result<Arc<NameIndex>, QueryError> {
        self.names.get(generation, NameIndex::load(generation, &stock_table.rows)).await
    }

    /// Table of all active funds, at the newest known data version of the generation.
    pub(crate) async fn etfs(&self, generation: &ServedGeneration) -> Result<Arc<EtfTable>, QueryError> {
        self.etfs.get(generation, EtfTable::load(generation)).await
    }

    /// Names that filters accept, for example sector names, at the newest known data version of the generation.
    pub(crate) async fn facet_index(
        &self,
        generation: &ServedGeneration,
    ) -> Result<Arc<FacetIndex>, QueryError> {
        self.facet_indexes.get(generation, load_facet_index(generation)).await
    }

    /// Counts that describe the quality of the data, at the newest known data version of the generation.
    pub(crate) async fn quality(
        &self,
        generation: &ServedGeneration,
    ) -> Result<Arc<QualityTables>, QueryError> {
        self.quality.get(generation, QualityTables::load(generation)).await
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
