//! The rules that the served figures were derived by.

use std::collections::BTreeMap;

use market::metrics::Rules;
use market::row::JsonColumn;
use rust_decimal::prelude::ToPrimitive;
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
        let JsonColumn(rules) = row.try_get("rules")?;
        Ok(Self { version: row.try_get("method_version")?, rules, note: row.try_get("note")? })
    }

    /// A rule that is a whole number: what it deviates to, else its default.
    pub(crate) fn whole(&self, rule: &str) -> i64 {
        let deviating = self.rules.get(rule).and_then(|text| text.parse().ok());
        let default = || Rules::PARAMETERS.iter().find(|known| known.name == rule)?.default.to_i64();
        deviating.or_else(default).unwrap_or_default()
    }

    /// True if these are the rules as they stand, without a word about them.
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
