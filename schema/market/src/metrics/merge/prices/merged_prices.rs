//! Result of the merge of prices.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;

use crate::bars::Bars;
use crate::row::QuarantineReason;

/// Bars left out of a merge, as pairs of source index and day number.
pub(crate) type ExcludedBars = BTreeSet<(usize, i32)>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QuarantinedBar {
    pub day: i32,
    pub source: String,
    pub line: u64,
    /// Close as given by the source. For a bar in a wrong unit, it is the raw close.
    pub close: Decimal,
    pub reason: QuarantineReason,
    pub message: String,
}

#[derive(Debug, Default)]
pub(crate) struct MergedPrices {
    /// Raw bars in the canonical form, without versions.
    pub bars: Bars,
    pub quarantined: Vec<QuarantinedBar>,
    /// Indexes of the bars with a large move: of this close and the close before it, one is more than three eighths above
    /// the other.
    pub large_moves: Vec<usize>,
    /// True if there is only one source and its bars are used unchanged.
    pub is_plain: bool,
    /// Observation time of the newest bar.
    pub observed_at: Option<DateTime<Utc>>,
    /// Index of the source of each bar. Empty if all bars come from the first source.
    pub(super) origin: Vec<usize>,
}

impl MergedPrices {
    /// Index of the source of a bar.
    pub(crate) fn source_of(&self, index: usize) -> usize {
        self.origin.get(index).copied().unwrap_or_default()
    }
}
