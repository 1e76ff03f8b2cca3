//! The order of versions (R29): which of several rows about one thing counts.

/// What a row is worth against another about the same thing: the greater one counts, whatever came first.
///
/// Fields are compared in their order, so the order is total and any permutation of rows has the same winner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version<'a> {
    /// The vendor's revision.
    pub revision: i64,
    /// How well dated a row with a vendor's id is (R29); 0 for all others.
    pub preference: u32,
    /// Microseconds since 1970, UTC.
    pub observed_at: i64,
    /// A retraction wins over a put of the same moment.
    pub retracted: bool,
    /// Line in the feed's file: later rows of one file win.
    pub line: u64,
    /// Id of the frame.
    pub frame: &'a [u8; 16],
}
