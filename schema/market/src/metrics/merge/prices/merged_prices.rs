//! Result of the merge of prices: the bars used in the figures, and the quarantined bars.

use std::collections::BTreeSet;
use std::sync::Arc;

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
    /// Close as adjusted by the feed. For a bar with a wrong price level (R36), the raw close, without split
    /// adjustment.
    pub close: Decimal,
    pub reason: QuarantineReason,
    pub message: String,
}

#[derive(Debug, Default)]
pub(crate) struct MergedPrices {
    /// Raw bars with the smallest possible number of decimal places. Their versions (revision and observation time) are
    /// not merged, and must not be used.
    pub bars: Arc<Bars>,
    pub quarantined: Vec<QuarantinedBar>,
    /// Indexes of the bars whose close differs from the previous close by more than a factor of 1.375.
    pub large_moves: Vec<usize>,
    /// True if the security has only one source, and its bars are used without change.
    pub is_plain: bool,
    /// Latest observation time of the source bars that are dated up to the as-of date; `None` without bars.
    pub observed_at: Option<DateTime<Utc>>,
    /// For each bar, the index of its source in the history. Empty if all bars come from the first source.
    pub(super) origin: Vec<usize>,
}

impl MergedPrices {
    /// Index of the source of a bar.
    pub(crate) fn source_of(&self, index: usize) -> usize {
        self.origin.get(index).copied().unwrap_or_default()
    }
}
