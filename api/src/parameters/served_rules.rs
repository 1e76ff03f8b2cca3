//! Rules of the served figures.

use std::collections::BTreeMap;

use market::metrics::Rules;
use market::row::JsonColumn;
use rust_decimal::prelude::ToPrimitive;
use serde::Serialize;
use tokio_postgres::Row;

/// Rules of a generation, with the operator's note.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub(crate) struct Method {
    /// Value of `metrics.method_version`.
    pub(crate) version: String,
    /// Rule parameters with non-default values, by name.
    pub(crate) rules: BTreeMap<String, String>,
    /// Note of the operator at the promotion.
    pub(crate) note: Option<String>,
}

impl Method {
    /// Reads the columns `method_version`, `rules` and `note`.
    pub(crate) fn of(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let JsonColumn(rules) = row.try_get("rules")?;
        Ok(Self { version: row.try_get("method_version")?, rules, note: row.try_get("note")? })
    }

    /// Value of an integer rule: the deviating one, else the default.
    pub(crate) fn whole(&self, rule: &str) -> i64 {
        let deviating = self.rules.get(rule).and_then(|text| text.parse().ok());
        let default = || Rules::PARAMETERS.iter().find(|known| known.name == rule)?.default.to_i64();
        deviating.or_else(default).unwrap_or_default()
    }

    /// True for the default rules without a note.
    pub(crate) fn is_plain(&self) -> bool {
        self.rules.is_empty() && self.note.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_rule_is_what_is_served_or_its_default() {
        let rules = [("lists.king_years".to_owned(), "40".to_owned())].into();
        let method = Method { rules, ..Method::default() };
        assert_eq!((method.whole("lists.king_years"), method.whole("lists.aristocrat_years")), (40, 25));
    }
}
