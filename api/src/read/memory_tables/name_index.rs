//! In-memory name index of the search.

use std::collections::HashMap;

use super::stocks::Member;
use crate::parameters::trigram::trigrams;
use crate::read::ReadError;
use crate::read::lookup;
use crate::read::projection::Generation;

const NAMES: &str = include_str!("../../../queries/search/names.sql");

/// Searchable names of all securities beyond their list rows.
#[derive(Debug)]
pub(crate) struct Names {
    by_symbol: HashMap<String, Known>,
}

/// Searchable names of one security.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) isin: Option<String>,
    pub(crate) former_symbols: Vec<String>,
    /// Name in lower case.
    pub(crate) name: String,
    /// Sorted trigrams of the name.
    pub(crate) trigrams: Vec<u32>,
}

impl Names {
    /// Reads the names missing in the list rows, in one statement.
    pub(super) async fn load(generation: &Generation, members: &[Member]) -> Result<Self, ReadError> {
        let names: HashMap<&str, &str> =
            members.iter().map(|m| (m.stock.symbol.as_str(), m.stock.name.as_str())).collect();
        let mut by_symbol = HashMap::new();
        for row in lookup::query(generation, NAMES, &[]).await? {
            let Some(symbol) = row.try_get::<_, Option<String>>("symbol")? else { continue };
            let name = names.get(symbol.as_str()).copied().unwrap_or_default().to_lowercase();
            let trigrams = trigrams(&name);
            let known = Known {
                isin: row.try_get("isin")?,
                former_symbols: row.try_get("former_symbols")?,
                name,
                trigrams,
            };
            by_symbol.insert(symbol, known);
        }
        Ok(Self { by_symbol })
    }

    /// Searchable names of one security.
    pub(crate) fn of(&self, symbol: &str) -> Option<&Known> {
        self.by_symbol.get(symbol)
    }
}
