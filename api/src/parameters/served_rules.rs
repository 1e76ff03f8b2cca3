//! Served rules: the values of the rule parameters, such as `lists.king_years`, that determine the served figures.

use std::collections::BTreeMap;

use market::metrics::Rules;
use market::row::JsonColumn;
use rust_decimal::prelude::ToPrimitive;
use serde::Serialize;
use tokio_postgres::Row;

/// Rule parameters of a generation, with the operator's note.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub(crate) struct ServedRules {
    /// Version of the calculation rules, equal to `metrics.method_version`.
    #[serde(rename = "version")]
    pub(crate) method_version: String,
    /// Values of the rule parameters that differ from their defaults, by parameter name.
    pub(crate) rules: BTreeMap<String, String>,
    /// Note that the operator wrote when the generation was promoted, that is, when it became the served one. `None`
    /// without a note.
    pub(crate) note: Option<String>,
}

impl ServedRules {
    /// Reads the columns `method_version`, `rules` and `note`.
    pub(crate) fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let JsonColumn(rules) = row.try_get("rules")?;
        Ok(Self { method_version: row.try_get("method_version")?, rules, note: row.try_get("note")? })
    }

    /// Value of an integer rule parameter in the served generation, or its default.
    pub(crate) fn integer_rule(&self, rule: &str) -> i64 {
        let deviating = self.rules.get(rule).and_then(|text| text.parse().ok());
        let default = || Rules::PARAMETERS.iter().find(|known| known.name == rule)?.default.to_i64();
        deviating.or_else(default).unwrap_or_default()
    }

    /// True if all rule parameters have their defaults and the operator wrote no note.
    pub(crate) fn is_default(&self) -> bool {
        self.rules.is_empty() && self.note.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_rule_is_what_is_served_or_its_default() {
        let rules = [("lists.king_years".to_owned(), "40".to_owned())].into();
        let method = ServedRules { rules, ..ServedRules::default() };
        assert_eq!(
            (method.integer_rule("lists.king_years"), method.integer_rule("lists.aristocrat_years")),
            (40, 25)
        );
    }
}
