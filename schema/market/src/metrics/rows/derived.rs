//! Rows of one security in the read tables.

use std::sync::Arc;

use crate::bars::Bars;
use crate::metrics::prices::adjustment::AdjustmentFactor;
use crate::row::{self, SplitStatus};

/// All rows of one security.
#[derive(Debug, Clone, PartialEq)]
pub struct DerivedRows {
    /// Row of the security in lists and screeners.
    pub stock: row::Stock,
    /// End-of-day quote: latest price and headline yield.
    pub quote: row::Quote,
    /// Company figures; `None` for a provisional security without reported figures.
    pub fundamentals: Option<row::FundamentalsRow>,
    /// Dividend metrics.
    pub metrics: row::Metrics,
    /// True if a dividend was paid, is declared or is projected.
    pub has_dividends: bool,
    /// Dividends, sorted by ex-date. Cancelled dividends, and projections of the next 366 days, are included.
    pub dividends: Vec<row::DividendRow>,
    /// Splits, sorted by ex-date. Announced and cancelled splits are included.
    pub splits: Vec<row::SplitRow>,
    /// Raw bars up to the as-of date, one per session. Their versions (revision and observation time) are not derived,
    /// and must not be used.
    pub bars: Arc<Bars>,
    /// Adjustment factors up to the as-of date, sorted by ex-date.
    pub factors: Vec<AdjustmentFactor>,
    /// Quarantined rows with their reasons.
    pub quarantined: Vec<row::Quarantined>,
}

impl DerivedRows {
    /// True if the security has at least one row that is not withdrawn. Quarantined rows count. Securities without such
    /// a row are not listed.
    pub fn has_live_rows(&self) -> bool {
        !self.bars.is_empty()
            || self.fundamentals.is_some()
            || !self.quarantined.is_empty()
            || self.has_dividends
            || self.splits.iter().any(|row| row.status != SplitStatus::Cancelled)
    }
}
