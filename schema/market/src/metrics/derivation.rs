//! Derivation of one security: from its facts to the rows that are served.

use std::collections::BTreeMap;
use std::hash::BuildHasher;

use super::computed;
use super::computed::ComputedMetrics;
use super::context::DerivationContext;
use super::merge::closes_suffice;
use super::prices::adjustment::AdjustmentFactor;
use super::rows;
use crate::bars::Bars;
use crate::history::History;
use crate::row::{self, SplitStatus};

/// Computed metrics of a security, ready to become rows.
#[derive(Debug)]
pub struct Derivation<'a>(ComputedMetrics<'a>);

impl<'a> Derivation<'a> {
    /// Computes the metrics of a security.
    pub fn new(history: &'a History, context: &DerivationContext<'a>) -> Self {
        Self(computed::compute(history, context))
    }

    /// True if closes-only years are sufficient: every row is the same without their other columns.
    pub fn closes_suffice(&self) -> bool {
        let inputs = &self.0.inputs;
        closes_suffice(inputs.history, &inputs.merged.prices, inputs.as_of)
    }

    /// Fingerprints of the dividend rows by ex-date year, computed before the rows exist. Rows with equal
    /// fingerprints have equal bytes.
    pub fn fingerprint_dividends(&self, hashes: &impl BuildHasher) -> BTreeMap<i32, u64> {
        rows::dividend_fingerprints(&self.0, hashes)
    }

    /// Converts the metrics to all rows.
    pub fn rows(self) -> DerivedRows {
        rows::derived(self.0)
    }

    /// Converts the metrics to all rows except dividends.
    pub fn rows_without_dividends(self) -> DerivedRows {
        rows::without_dividends(self.0)
    }
}

/// All rows of one security.
#[derive(Debug, Clone, PartialEq)]
pub struct DerivedRows {
    /// Row of lists and screeners.
    pub stock: row::Stock,
    /// Latest price and yield.
    pub quote: row::Quote,
    /// Company figures; `None` for a provisional security without reported figures.
    pub fundamentals: Option<row::FundamentalsRow>,
    /// Dividend metrics.
    pub metrics: row::Metrics,
    /// True if a dividend was paid, is declared or is projected.
    pub has_dividends: bool,
    /// Dividends by ex-date, with cancelled ones and projections of the next 366 days.
    pub dividends: Vec<row::DividendRow>,
    /// Splits by ex-date, with announced and cancelled ones.
    pub splits: Vec<row::SplitRow>,
    /// Raw bars up to the as-of date, one per session, without versions.
    pub bars: Bars,
    /// Adjustment factors by ex-date, up to the as-of date.
    pub factors: Vec<AdjustmentFactor>,
    /// Quarantined rows with their reasons.
    pub quarantined: Vec<row::Quarantined>,
}

impl DerivedRows {
    /// True if the security has any live row, quarantined rows included. A security with only withdrawn rows
    /// is not listed.
    pub fn has_live_rows(&self) -> bool {
        !self.bars.is_empty()
            || self.fundamentals.is_some()
            || !self.quarantined.is_empty()
            || self.has_dividends
            || self.splits.iter().any(|row| row.status != SplitStatus::Cancelled)
    }
}
