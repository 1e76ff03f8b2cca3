//! Which rows of a table are replaced: some securities', all of them or those from an ex-date on.

use chrono::NaiveDate;

/// Rows of a table that are replaced.
#[derive(Debug, Clone)]
pub(crate) struct Stale<'a> {
    pub symbols: Vec<&'a str>,
    /// The first ex-date of the rows that are replaced; `None`: all rows of the securities.
    pub since: Option<NaiveDate>,
}

impl<'a> Stale<'a> {
    /// All rows of these securities.
    pub(crate) fn whole(symbols: impl IntoIterator<Item = &'a str>) -> Self {
        Self { symbols: symbols.into_iter().collect(), since: None }
    }
}
