//! In-memory index of searchable names.

use std::collections::HashMap;

use super::list_table::SecurityRow;
use crate::parameters::facets::trigram::trigrams;
use crate::read::{QueryError, ServedGeneration, lookup};

const NAMES: &str = include_str!("../../../queries/search/names.sql");

/// Searchable names of all securities, by symbol.
#[derive(Debug)]
pub(crate) struct NameIndex {
    by_symbol: HashMap<String, SearchNames>,
}

/// Searchable names of one security.
#[derive(Debug)]
pub(crate) struct SearchNames {
    pub(crate) isin: Option<String>,
    pub(crate) former_symbols: Vec<String>,
    /// Name in lower case.
    pub(crate) name: String,
    /// Sorted trigrams of the name.
    pub(crate) trigrams: Vec<u32>,
}

impl NameIndex {
    /// Reads ISINs and former symbols in one statement, and takes the names from `securities`.
    pub(super) async fn load(
        generation: &ServedGeneration,
        securities: &[SecurityRow],
    ) -> Result<Self, QueryError> {
        let names: HashMap<&str, &str> =
            securities.iter().map(|m| (m.stock.symbol.as_str(), m.stock.name.as_str())).collect();
        let mut by_symbol = HashMap::new();
        for row in lookup::run_query(generation, NAMES, &[]).await? {
            let Some(symbol) = row.try_get::<_, Option<String>>("symbol")? else { continue };
            let name = names.get(symbol.as_str()).copied().unwrap_or_default().to_lowercase();
            let trigrams = trigrams(&name);
            let known = SearchNames {
                isin: row.try_get("isin")?,
                former_symbols: row.try_get("former_symbols")?,
                name,
                trigrams,
            };
            by_symbol.insert(symbol, known);
        }
        Ok(Self { by_symbol })
    }

    /// Searchable names of the security with this symbol.
    pub(crate) fn get(&self, symbol: &str) -> Option<&SearchNames> {
        self.by_symbol.get(symbol)
    }
}
