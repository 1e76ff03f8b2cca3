//! Which rows of a table are replaced: a security's, all of them or from an ex-date on.

use chrono::NaiveDate;

/// Securities whose rows of a table are replaced; the two lists are of one length.
#[derive(Debug, Clone)]
pub(crate) struct Stale<'a> {
    pub symbols: Vec<&'a str>,
    /// The first ex-date of each one's rows that are replaced; `None`: all of its rows.
    pub since: Vec<Option<NaiveDate>>,
}

impl<'a> Stale<'a> {
    /// All rows of these securities.
    pub(crate) fn whole(symbols: impl IntoIterator<Item = &'a str>) -> Self {
        symbols.into_iter().map(|symbol| (symbol, None)).collect()
    }

    /// Whether all rows of each security are replaced.
    pub(crate) fn is_whole(&self) -> bool {
        self.since.iter().all(Option::is_none)
    }
}

impl<'a> FromIterator<(&'a str, Option<NaiveDate>)> for Stale<'a> {
    fn from_iter<I: IntoIterator<Item = (&'a str, Option<NaiveDate>)>>(of: I) -> Self {
        let (symbols, since) = of.into_iter().unzip();
        Self { symbols, since }
    }
}
