//! Derivation of one security: computes the metrics from the security's facts, and converts the metrics to rows of the
//! read tables.

use std::collections::BTreeMap;
use std::hash::BuildHasher;

use super::computed::ComputedMetrics;
use super::computed::covered::{CoveredRows, covered_rows};
use super::computed::provenance::{self, ReadingCounts, RowsBySource};
use super::context::DerivationContext;
use super::merge::closes_suffice;
use super::rows::DerivedRows;
use super::{computed, rows};
use crate::history::History;
use crate::row::Metrics;

/// Computed metrics of a security, before their conversion to rows.
#[derive(Debug)]
pub struct Derivation<'a>(ComputedMetrics<'a>);

impl<'a> Derivation<'a> {
    /// Computes all metrics of a security.
    pub fn new(history: &'a History, context: &DerivationContext<'a>) -> Self {
        Self(computed::compute(history, context))
    }

    /// True if the loaded bars suffice. The caller may have loaded only the closes of some years. The bars suffice if
    /// fully loaded bars would give the same rows.
    pub fn closes_suffice(&self) -> bool {
        let inputs = &self.0.inputs;
        closes_suffice(inputs.history, &inputs.merged.prices, inputs.as_of)
    }

    /// Hashes of the dividend rows, one for each year of ex-dates. The rows themselves are not built. Equal hashes mean
    /// equal rows.
    pub fn fingerprint_dividends(&self, hashes: &impl BuildHasher) -> BTreeMap<i32, u64> {
        rows::dividend_fingerprints(&self.0, hashes)
    }

    /// Number of rows used in the metrics, by kind and source.
    pub fn rows_by_source(&self) -> RowsBySource {
        provenance::rows_by_source(&self.0)
    }

    /// Rows that rows of other sources take out of the figures (R32).
    pub fn covered_rows(&self) -> CoveredRows {
        covered_rows(&self.0)
    }

    /// Number of dividend rows by their interpretation in the payment schedule, for example as payments or duplicates.
    pub fn reading_counts(&self) -> ReadingCounts {
        provenance::reading_counts(&self.0)
    }

    /// Converts the metrics to their row alone.
    pub fn metrics(self) -> Metrics {
        rows::metrics(&self.0, &rows::quarantined(&self.0))
    }

    /// Converts the metrics to the rows of all read tables.
    pub fn rows(self) -> DerivedRows {
        rows::derived(self.0)
    }

    /// Converts the metrics to the rows of all read tables, except the dividend rows.
    pub fn rows_without_dividends(self) -> DerivedRows {
        rows::without_dividends(self.0)
    }
}
