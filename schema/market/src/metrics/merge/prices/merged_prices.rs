//! Result of the merge of prices: the bars used in the figures, and the quarantined bars.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;

use crate::bars::Bars;
use crate::row::QuarantineReason;

/// Bars that a merge leaves out, as pairs of source index and day number.
pub(crate) type ExcludedBars = BTreeSet<(usize, i32)>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QuarantinedBar {
    pub day: i32,
    pub source: String,
    pub line: u64,
    /// Close as the feed reported it, before the conversion to a raw price. Exception: for a bar that is quarantined by
    /// its price level, this is the raw close.
    pub close: Decimal,
    pub reason: QuarantineReason,
    pub message: String,
}

#[derive(Debug, Default)]
pub(crate) struct MergedPrices {
    /// Raw bars in the canonical form, without versions.
    pub bars: Bars,
    pub quarantined: Vec<QuarantinedBar>,
    /// Indexes of bars with a large move: the close or the previous close is more than three eighths above the other
    /// one. Every unit error and every split of at least 3 for 2 is such a move.
    pub large_moves: Vec<usize>,
    /// True if the security has only one source and all its bars are used unchanged.
    pub is_plain: bool,
    /// Observation time of the newest bar; `None` without bars.
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
