//! In-memory tables, one per data version, for lists with arbitrary filters and sort keys.

mod etfs;
mod names;
mod per_version;
mod stocks;
mod vocabulary;

pub(crate) use etfs::Etfs;
pub(crate) use names::{Known, Names};
pub(crate) use stocks::{Member, Universe};

use std::sync::Arc;

use super::ReadError;
use super::projection::Generation;
use crate::parameters::facets::Vocabulary;
use per_version::PerVersion;

/// In-memory tables of all lists.
#[derive(Debug, Default)]
pub(crate) struct Universes {
    stocks: PerVersion<Universe>,
    names: PerVersion<Names>,
    etfs: PerVersion<Etfs>,
    vocabularies: PerVersion<Vocabulary>,
}

impl Universes {
    /// List rows of all securities, at the generation's newest version.
    pub(crate) async fn stocks(&self, generation: &Generation) -> Result<Arc<Universe>, ReadError> {
        self.stocks.get(generation, Universe::load(generation)).await
    }

    /// Search names of these securities.
    pub(crate) async fn names(
        &self,
        generation: &Generation,
        universe: &Universe,
    ) -> Result<Arc<Names>, ReadError> {
        self.names.get(generation, Names::load(generation, &universe.members)).await
    }

    /// All active funds, at the generation's newest version.
    pub(crate) async fn etfs(&self, generation: &Generation) -> Result<Arc<Etfs>, ReadError> {
        self.etfs.get(generation, Etfs::load(generation)).await
    }

    /// Names for the filters.
    pub(crate) async fn vocabulary(&self, generation: &Generation) -> Result<Arc<Vocabulary>, ReadError> {
        self.vocabularies.get(generation, vocabulary::load(generation)).await
    }
}
