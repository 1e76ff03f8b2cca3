//! Statistics of a file or load: records, rows by kind, rejects by reason.

use std::collections::BTreeMap;

use market::event::{Kind, Reject};

use crate::batch::coverage::LoadCoverage;
use crate::batch::retractions::Retractions;
use crate::batch::reviewed_rows::ReviewedRows;
use crate::batch::security_currencies::{AssumedDollars, MissingCurrencyCounts, SecurityCurrencies};
use crate::price::conflicting_prices::ConflictingPrices;

/// Maximum number of rejects in the summary.
const MAX_EXAMPLES: usize = 10;

/// Statistics of the records that were read from a file or load.
#[derive(Debug, Default, Clone)]
pub struct LoadStats {
    /// Number of records that were read, including rejects.
    pub records: u64,
    pub rows: BTreeMap<Kind, u64>,
    pub rejects: BTreeMap<&'static str, u64>,
    /// Number of records that the map skips, by reason.
    pub skipped: BTreeMap<String, u64>,
    pub rounded: u64,
    pub examples: Vec<Reject>,
    /// Coverage of the accepted rows.
    pub(crate) coverage: LoadCoverage,
    /// Counts of dividends without a currency. Such a dividend gets the currency of its security.
    pub(crate) missing_currencies: MissingCurrencyCounts,
    /// Securities without a currency. US dollars are assumed for them.
    pub(crate) securities_without_currency: AssumedDollars,
    /// Currencies of securities, from the reference records among the accepted rows.
    pub(crate) currencies: SecurityCurrencies,
    /// Accepted rows for the review at the end of the load. The review checks these rows against the domain rules.
    pub(crate) reviewed: ReviewedRows,
    /// Prices of one day that differ.
    pub(crate) conflicting_prices: ConflictingPrices,
    /// Retractions among the accepted rows.
    pub(crate) retractions: Retractions,
}

impl LoadStats {
    /// Counts a reject.
    pub(crate) fn count_reject(&mut self, reason: &'static str, reject: &Reject) {
        *self.rejects.entry(reason).or_default() += 1;
        if self.examples.len() < MAX_EXAMPLES {
            self.examples.push(reject.clone());
        }
    }

    /// Counts a record that the map skips.
    pub(crate) fn count_skipped(&mut self, reason: String) {
        *self.skipped.entry(reason).or_default() += 1;
    }

    /// Number of rejects.
    pub fn rejected_count(&self) -> u64 {
        self.rejects.values().sum()
    }

    /// Number of accepted rows of all kinds.
    pub fn accepted_count(&self) -> u64 {
        self.rows.values().sum()
    }

    /// Adds the statistics of another file.
    pub fn merge(&mut self, mut other: Self) {
        self.records += other.records;
        self.rounded += other.rounded;
        self.missing_currencies.merge(&other.missing_currencies);
        self.securities_without_currency.merge(&other.securities_without_currency);
        self.currencies.merge(&other.currencies);
        self.conflicting_prices.merge(&other.conflicting_prices);
        self.reviewed.merge(std::mem::take(&mut other.reviewed));
        self.coverage.merge(&other.coverage);
        self.retractions.merge(&other.retractions);
        other.rows.iter().for_each(|(kind, rows)| *self.rows.entry(*kind).or_default() += rows);
        other.rejects.iter().for_each(|(reason, rows)| *self.rejects.entry(reason).or_default() += rows);
        other.skipped.iter().for_each(|(why, rows)| *self.skipped.entry(why.clone()).or_default() += rows);
        let room = MAX_EXAMPLES.saturating_sub(self.examples.len());
        self.examples.extend(other.examples.iter().take(room).cloned());
    }
}
