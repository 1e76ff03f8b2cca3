//! Choices of the screener page in the query: preset, filters and order.

use crate::dashboard::market::api_calls::encode;
use crate::dashboard::session::form::Form;

/// Presets, each with the value of the parameter `preset`, a title, and the path of the API endpoint.
pub(crate) const PRESETS: [(&str, &str, &str); 5] = [
    ("all", "All", "/v1/screener"),
    ("high-yield", "High yield", "/v1/screener/high-yield"),
    ("growth", "Dividend growth", "/v1/screener/dividend-growth"),
    ("aristocrats", "Aristocrats", "/v1/screener/dividend-aristocrats"),
    ("kings", "Kings", "/v1/screener/dividend-kings"),
];
/// Filters: parameter name and title. The parameter has the same name on the page and in the API.
pub(crate) const FILTERS: [(&str, &str); 12] = [
    ("min_yield", "Least yield, %"),
    ("max_yield", "Highest yield, %"),
    ("max_payout_ratio", "Highest payout ratio, %"),
    ("min_growth_5y", "Least growth of 5 years, %"),
    ("min_streak", "Least years of raises"),
    ("min_market_cap", "Least market value"),
    ("max_pe", "Highest price over earnings"),
    ("max_beta", "Highest beta"),
    ("sector", "Sector"),
    ("country", "Country"),
    ("type", "Type"),
    ("index", "Index"),
];
/// Number of rows per page.
const ROWS: u32 = 50;
/// Maximum length of a parameter's value, in characters.
const LONGEST: usize = 200;

/// Choices of a screener page.
#[derive(Debug, Clone)]
pub(crate) struct ScreenChoice {
    pub(crate) preset: &'static str,
    /// Filters that are set, as parameter name and value.
    pub(crate) filters: Vec<(&'static str, String)>,
    /// Value of the API's parameter `sort`; empty for the default order.
    pub(crate) sort: String,
    /// Cursor of the page; empty for the first page.
    cursor: String,
}

impl ScreenChoice {
    pub(crate) fn read(parameters: &Form) -> Self {
        let preset =
            PRESETS.iter().find(|(name, ..)| *name == parameters.text("preset")).unwrap_or(&PRESETS[0]);
        let value =
            |name: &str, most: usize| -> String { parameters.text(name).chars().take(most).collect() };
        let filters = FILTERS.into_iter().map(|(name, _)| (name, value(name, LONGEST)));
        Self {
            preset: preset.0,
            filters: filters.filter(|(_, value)| !value.is_empty()).collect(),
            sort: value("sort", LONGEST),
            cursor: value("cursor", 4_096),
        }
    }

    /// Value of a filter; empty if it is not set.
    pub(crate) fn filter(&self, name: &str) -> &str {
        self.filters.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    /// The same filters on the first page of another preset.
    pub(crate) fn of_preset(&self, preset: &'static str) -> Self {
        Self { preset, cursor: String::new(), ..self.clone() }
    }

    /// The same choices on the first page in the order `sort`.
    pub(crate) fn sorted_by(&self, sort: String) -> Self {
        Self { sort, cursor: String::new(), ..self.clone() }
    }

    /// The same choices on the page that begins at a cursor.
    pub(crate) fn at(&self, cursor: &str) -> Self {
        Self { cursor: cursor.to_owned(), ..self.clone() }
    }

    /// Path and query of the page.
    pub(crate) fn address(&self) -> String {
        format!("/screener?preset={}{}", self.preset, self.query())
    }

    /// Path and query of the API call that returns the rows of the page.
    pub(crate) fn call(&self) -> String {
        let path = PRESETS.iter().find(|(name, ..)| *name == self.preset).map_or("", |(.., path)| *path);
        format!("{path}?limit={ROWS}{}", self.query())
    }

    fn query(&self) -> String {
        let rest = [("sort", &self.sort), ("cursor", &self.cursor)];
        let filters = self.filters.iter().map(|(name, value)| (*name, value));
        let set = filters.chain(rest).filter(|(_, value)| !value.is_empty());
        set.map(|(name, value)| format!("&{name}={}", encode(value))).collect()
    }
}
