//! The rules that the served figures were derived by.

use std::collections::BTreeMap;

use market::row::Json;
use serde::Serialize;
use tokio_postgres::Row;

/// By which rules a generation was derived, and why it is served.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub(crate) struct Method {
    /// As in `metrics.method_version`.
    pub(crate) version: String,
    /// Rule parameters that are not their defaults, by name.
    pub(crate) rules: BTreeMap<String, String>,
    /// What the operator said when promoting it.
    pub(crate) note: Option<String>,
}

impl Method {
    /// Reads the columns method_version, rules and note.
    pub(crate) fn of(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let Json(rules) = row.try_get("rules")?;
        Ok(Self { version: row.try_get("method_version")?, rules, note: row.try_get("note")? })
    }

    /// Whether these are the rules as they stand, without a word about them.
    pub(crate) fn is_plain(&self) -> bool {
        self.rules.is_empty() && self.note.is_none()
    }
}
