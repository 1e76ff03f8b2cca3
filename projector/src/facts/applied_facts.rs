//! Fact rows that a batch wrote. The cache is updated with them.

use codec::bars::PackedBars;
use market::event::Kind;

/// Key of a row of `records`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordsKey {
    /// Symbol; empty for facts of the whole market.
    pub symbol: String,
    /// Kind of all observations in the row.
    pub kind: Kind,
    /// Feed of the observations.
    pub source: String,
}

/// Row of `records` with new observations.
#[derive(Debug)]
pub struct AppliedRecords {
    /// Key of the row.
    pub key: RecordsKey,
    /// All observations of the row, including those from earlier batches.
    pub packed: Vec<u8>,
    /// `true` if the table had a row with this key.
    pub replaces: bool,
    /// Packed observations that the merge dropped, because an equal observation has a later provenance.
    pub superseded: Vec<Vec<u8>>,
}

/// Symbol, source, year.
pub type BarsKey = (String, String, i32);

/// Row of `bars` with changed prices.
#[derive(Debug)]
pub struct AppliedBars {
    /// Key of the row.
    pub key: BarsKey,
    /// 64-bit digest of the prices, without versions.
    pub digest: i64,
    /// All bars of the year, including those from earlier batches.
    pub packed: PackedBars,
    /// `true` if the table had a row with this key.
    pub replaces: bool,
    /// Day number of the newest bar that is not retracted; `None` if all bars are retracted.
    pub last_day: Option<i32>,
    /// Packed bars that the merge replaced by other versions of the same day.
    pub superseded: Vec<Vec<u8>>,
}
