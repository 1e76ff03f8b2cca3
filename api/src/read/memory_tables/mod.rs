//! In-memory tables for lists with arbitrary filters and sort keys.

mod etfs;
mod facet_index;
mod name_index;
mod stocks;
mod versioned_cache;

pub(crate) use etfs::EtfTable;
pub(crate) use name_index::{NameIndex, SearchNames};
pub(crate) use stocks::{SecurityRow, StockTable};

use std::sync::Arc;

use super::{QueryError, ServedGeneration};
use crate::parameters::facets::FacetIndex;
use versioned_cache::VersionedCache;

/// In-memory tables of all lists.
#[derive(Debug, Default)]
pub(crate) struct MemoryTables {
    stocks: VersionedCache<StockTable>,
    names: VersionedCache<NameIndex>,
    etfs: VersionedCache<EtfTable>,
    facet_indexes: VersionedCache<FacetIndex>,
}

impl MemoryTables {
    /// List rows of all securities, at the newest version of the generation.
    pub(crate) async fn stocks(&self, generation: &ServedGeneration) -> Result<Arc<StockTable>, QueryError> {
        self.stocks.get(generation, StockTable::load(generation)).await
    }

    /// Searchable names of the securities in `stock_table`.
    pub(crate) async fn names(
        &self,
        generation: &ServedGeneration,
        stock_table: &StockTable,
    ) -> Result<Arc<NameIndex>, QueryError> {
        self.names.get(generation, NameIndex::load(generation, &stock_table.securities)).await
    }

    /// All active funds, at the newest version of the generation.
    pub(crate) async fn etfs(&self, generation: &ServedGeneration) -> Result<Arc<EtfTable>, QueryError> {
        self.etfs.get(generation, EtfTable::load(generation)).await
    }

    /// Index of filter names, at the newest version of the generation.
    pub(crate) async fn facet_index(
        &self,
        generation: &ServedGeneration,
    ) -> Result<Arc<FacetIndex>, QueryError> {
        self.facet_indexes.get(generation, facet_index::load(generation)).await
    }
}
