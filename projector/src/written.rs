//! Rows of facts that a batch wrote, for whoever holds the rows as they were.

use market::bars::Packed;
use market::event::Kind;

/// What one row of the table holds the observations of; the symbol is empty for the whole market.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordsKey {
    pub symbol: String,
    pub kind: Kind,
    pub source: String,
}

/// A row whose set grew.
#[derive(Debug)]
pub struct WrittenRecords {
    pub key: RecordsKey,
    pub packed: Vec<u8>,
    pub replaces: bool,
}

/// Symbol, source, year.
pub type YearKey = (String, String, i32);

/// A year that is another now.
#[derive(Debug)]
pub struct WrittenYear {
    pub key: YearKey,
    pub digest: i64,
    pub packed: Packed,
    pub replaces: bool,
    pub last_day: Option<i32>,
}
