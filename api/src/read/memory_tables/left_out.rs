//! Securities that rest on a source which must not be redistributed. Bulk responses, and pages for readers without an
//! account, leave them out.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use utoipa::ToSchema;

use crate::read::{QueryError, ServedGeneration, lookup};

const LEFT_OUT: &str = include_str!("../../../queries/sources/left_out.sql");

/// State of the tables of `control` that responses show, as read with the data version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct ControlState {
    /// Number of their rows: stated licences and measured months. Both are append-only. A cached response has one
    /// revision.
    pub(crate) revision: i64,
    /// True if at least one source must not be redistributed.
    pub(crate) restricts: bool,
}

impl ControlState {
    /// Reads the columns `control_revision` and `restricts`.
    pub(crate) fn from_row(row: &tokio_postgres::Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self { revision: row.try_get("control_revision")?, restricts: row.try_get("restricts")? })
    }
}

/// Securities to leave out, by canonical symbol, with the sources that must not be redistributed.
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

    /// Description of the securities that a response leaves out; `None` without any.
    pub(crate) fn describe(&self, symbols: BTreeSet<String>) -> Option<LeftOut> {
        let sources: BTreeSet<&String> =
            symbols.iter().filter_map(|symbol| self.0.get(symbol)).flatten().collect();
        let sources = sources.into_iter().cloned().collect();
        (!symbols.is_empty()).then(|| LeftOut { sources, symbols: symbols.into_iter().collect() })
    }
}
