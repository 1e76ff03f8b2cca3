//! Everything served about one security.

use super::adjust::Factor;
use crate::bars::Bars;
use crate::row::{self, SplitStatus};

/// Everything served about one security.
#[derive(Debug, Clone, PartialEq)]
pub struct Derived {
    /// The row of lists and screeners.
    pub stock: row::Stock,
    /// The latest price and yield.
    pub quote: row::Quote,
    /// `None` for a provisional security without any reported figure.
    pub fundamentals: Option<row::FundamentalsRow>,
    /// Every dividend figure.
    pub metrics: row::Metrics,
    /// Whether any dividend was paid, is declared or is expected.
    pub has_dividends: bool,
    /// By ex-date; cancelled ones and projections of the next 366 days included.
    pub dividends: Vec<row::DividendRow>,
    /// By ex-date; announced and cancelled ones included.
    pub splits: Vec<row::SplitRow>,
    /// Raw bars up to the as-of date, one per session, versions left behind.
    pub bars: Bars,
    /// One entry per ex-date up to the as-of date: what adjusted prices are made with.
    pub factors: Vec<Factor>,
    /// Rows held back, with the reason.
    pub quarantined: Vec<row::Quarantined>,
}

impl Derived {
    /// Whether any row of the security stands, one that is held back included: what was withdrawn whole, as when a load
    /// that invented a symbol is taken back, is nothing to list.
    pub fn stands(&self) -> bool {
        !self.bars.is_empty()
            || self.fundamentals.is_some()
            || !self.quarantined.is_empty()
            || self.has_dividends
            || self.splits.iter().any(|row| row.status != SplitStatus::Cancelled)
    }
}
