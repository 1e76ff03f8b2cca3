//! Securities that rest on a source which must not be redistributed. Bulk responses, and pages for readers without an
//! account, leave them out.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use utoipa::ToSchema;

use crate::read::{QueryError, ServedGeneration, lookup};

const LEFT_OUT: &str = include_str!("../../../queries/sources/left_out.sql");

/// Securities to leave out, by each of their symbols, with the sources that must not be redistributed.
#[derive(Debug, Default)]
pub(crate) struct RestrictedSecurities(BTreeMap<String, Vec<String>>);

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
        let mut securities = BTreeMap::new();
        for row in lookup::run_query(generation, LEFT_OUT, &[]).await? {
            securities.insert(row.try_get("symbol")?, row.try_get("sources")?);
        }
        Ok(Self(securities))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, symbol: &str) -> bool {
        self.0.contains_key(symbol)
    }

    /// True if a security rests on this source, which must not be redistributed.
    pub(crate) fn has_source(&self, source: &str) -> bool {
        self.0.values().flatten().any(|name| name == source)
    }

    /// Description of the securities that a response leaves out; `None` without any.
    pub(crate) fn describe(&self, symbols: BTreeSet<String>) -> Option<LeftOut> {
        let sources: BTreeSet<&String> =
            symbols.iter().filter_map(|symbol| self.0.get(symbol)).flatten().collect();
        let sources = sources.into_iter().cloned().collect();
        (!symbols.is_empty()).then(|| LeftOut { sources, symbols: symbols.into_iter().collect() })
    }
}
