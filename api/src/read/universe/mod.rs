//! Whole tables in memory, one version at a time: what lists filter and sort by anything.

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

/// What lists are made from.
#[derive(Debug, Default)]
pub(crate) struct Universes {
    stocks: PerVersion<Universe>,
    names: PerVersion<Names>,
    etfs: PerVersion<Etfs>,
    vocabularies: PerVersion<Vocabulary>,
}

impl Universes {
    /// Every security's list row, at the generation's newest version.
    pub(crate) async fn stocks(&self, generation: &Generation) -> Result<Arc<Universe>, ReadError> {
        self.stocks.get(generation, Universe::load(generation)).await
    }

    /// What these securities are found by.
    pub(crate) async fn names(
        &self,
        generation: &Generation,
        universe: &Universe,
    ) -> Result<Arc<Names>, ReadError> {
        self.names.get(generation, Names::load(generation, &universe.members)).await
    }

    /// Every active fund, at the generation's newest version.
    pub(crate) async fn etfs(&self, generation: &Generation) -> Result<Arc<Etfs>, ReadError> {
        self.etfs.get(generation, Etfs::load(generation)).await
    }

    /// The names filters choose by.
    pub(crate) async fn vocabulary(&self, generation: &Generation) -> Result<Arc<Vocabulary>, ReadError> {
        self.vocabularies.get(generation, vocabulary::load(generation)).await
    }
}
