//! Rows of the fact tables that a batch wrote. They are used to update the fact cache.

use codec::bars::PackedBars;
use market::bars::SupersededBars;
use market::event::Kind;

/// Primary key of a row of table `records`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordsKey {
    /// Symbol; empty for facts of the whole market, such as trading sessions.
    pub symbol: String,
    /// Kind of the row's observations.
    pub kind: Kind,
    /// Source (feed) of the row's observations.
    pub source: String,
}

/// Row of table `records` with new observations.
#[derive(Debug)]
pub struct AppliedRecords {
    /// Key of the row.
    pub key: RecordsKey,
    /// All observations of the row that count, packed, including those from earlier batches. Empty if none counts: the
    /// table then has no such row.
    pub packed: Vec<u8>,
    /// `true` if the table already had a row with this key.
    pub replaces: bool,
    /// `true` if the row changes. Otherwise, there are only new observations that do not count.
    pub changes: bool,
    /// Packed observations that do not count any more. They are inserted into table `superseded_records`.
    pub superseded: Vec<Vec<u8>>,
}

/// Key of a row of table `bars`: symbol, source, calendar year.
pub type BarsKey = (String, String, i32);

/// Row of table `bars` with new bars.
#[derive(Debug)]
pub struct AppliedBars {
    /// Key of the row.
    pub key: BarsKey,
    /// 64-bit digest of the days, prices and volumes. It does not cover the revision and provenance of the bars.
    pub digest: i64,
    /// All bars of the year that count, including those from earlier batches. Without columns if no bar counts: the table
    /// then has no such row.
    pub packed: PackedBars,
    /// `true` if the table already had a row with this key.
    pub replaces: bool,
    /// `true` if the row changes. Otherwise, there are only new observations that do not count.
    pub changes: bool,
    /// Day number of the newest bar that is not retracted; `None` if all bars are retracted. Day 1 is 0001-01-01.
    pub last_day: Option<i32>,
    /// Bars that do not count any more. They are added to table `superseded_bars`.
    pub superseded: SupersededBars,
}

/// Splits the keys of rows into three parallel arrays: symbols, sources and years.
pub(super) fn key_columns<'a>(
    keys: impl IntoIterator<Item = &'a BarsKey>,
) -> (Vec<&'a str>, Vec<&'a str>, Vec<i32>) {
    keys.into_iter().map(|(symbol, source, year)| (symbol.as_str(), source.as_str(), *year)).collect()
}
