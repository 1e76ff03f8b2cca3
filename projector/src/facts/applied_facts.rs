//! Rows of facts that a batch wrote, for whoever holds the rows as they were.

use market::bars::Packed;
use market::event::Kind;

/// What one row of the table holds the observations of; the symbol is empty for the whole market.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordsKey {
    /// Empty for the whole market.
    pub symbol: String,
    /// All observations of a row are of one kind.
    pub kind: Kind,
    /// Feed that said them.
    pub source: String,
}

/// A row whose set grew.
#[derive(Debug)]
pub struct AppliedRecords {
    /// Which row of the table it is.
    pub key: RecordsKey,
    /// All observations of the row, those from before too.
    pub packed: Vec<u8>,
    /// Whether the table had a row of this key before.
    pub replaces: bool,
}

/// Symbol, source, year.
pub type BarsKey = (String, String, i32);

/// A year that is another now.
#[derive(Debug)]
pub struct AppliedBars {
    /// Which row of the table it is.
    pub key: BarsKey,
    /// 64 bits that tell the prices from others, versions aside.
    pub digest: i64,
    /// All bars of the year, those from before too.
    pub packed: Packed,
    /// Whether the table had a row of this key before.
    pub replaces: bool,
    /// Day number of the newest bar that was not retracted; `None` when all were.
    pub last_day: Option<i32>,
}
