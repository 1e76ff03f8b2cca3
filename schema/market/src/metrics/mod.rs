//! Metric rules: pure functions that compute the served figures from a security's facts and the market date.
//!
//! [`derive`](fn@derive) runs three stages: `merge` selects the valid events, `computed` calculates all metrics without
//! rounding, and `rows` rounds each metric once. [`explain`](fn@explain) documents the same computation.
//!
//! Invariants:
//!
//! - The functions use no clock, no I/O and no binary floating-point numbers.
//! - The result depends on the set of observations, never on their order.
//! - Facts that were not yet known on the as-of date, for example prices of later sessions, have no effect (R33).
//! - A derivation never fails, for any input.

pub(crate) mod arithmetic;
pub mod calendar;
mod computed;
mod context;
pub mod currency;
pub mod dividends;
pub mod exchange_rates;
pub mod explain;
pub mod fund;
pub mod merge;
pub mod prices;
pub mod revisions;
mod rows;
pub mod rules;
pub mod sector;
pub mod source_preference;
pub mod valuation;

use std::collections::BTreeMap;
use std::hash::BuildHasher;

use chrono::NaiveDate;
use computed::{ComputedMetrics, provenance};
use dividends::completeness::DividendCompleteness;

use crate::event::{DecidedRow, Decision};
use crate::history::{History, Observation, SourcePolicy};
use crate::row::{Metrics, Quarantined};

pub use computed::provenance::{CoveredRow, CoveredRows, ReadingCounts, RowsBySource};
pub use context::DerivationContext;
pub use dividends::completeness::FactorAgreement;
pub use exchange_rates::ExchangeRates;
pub use explain::{
    ExplainedDecision, ExplainedMetric, ExplainedObservation, ExplainedYear, Explanation, YearStatus,
    explain, explain_session,
};
pub use prices::adjustment::AdjustmentFactor;
pub use prices::growth_of_amount::{GrowthPoint, Investment, annualized_return, growth_of_amount};
pub use prices::risk::MonthlyReturns;
pub use prices::total_return::{CloseSeries, total_return};
pub use rows::DerivedRows;
pub use rules::{METHOD_VERSION, ParameterDeviation, RuleParameter, Rules};

/// Derives all rows of a security from its facts.
pub fn derive(history: &History, context: &DerivationContext<'_>) -> DerivedRows {
    Derivation::new(history, context).rows()
}

/// Quarantined rows of a security. Each has the key that review decisions use to identify the row.
pub fn quarantined_rows(
    history: &History,
    context: &DerivationContext<'_>,
) -> Vec<(Quarantined, DecidedRow)> {
    rows::quarantined_with_keys(&computed::compute(history, context))
}

/// Rows of a security that rows of other sources take out of the figures (R32).
pub fn covered_rows(history: &History, context: &DerivationContext<'_>) -> CoveredRows {
    Derivation::new(history, context).covered_rows()
}

/// For each source, the agreement of its implied dividend factors with the computed factors (R40).
pub fn factor_agreement(
    history: &History,
    context: &DerivationContext<'_>,
) -> BTreeMap<String, FactorAgreement> {
    let computed = computed::compute(history, context);
    let inputs = &computed.inputs;
    let agreement = DividendCompleteness::agreement_by_source(&inputs.merged, &inputs.ex_days);
    agreement.into_iter().map(|(source, agreement)| (source.to_owned(), agreement)).collect()
}

/// Newest decision about each row of a security, revoked decisions included.
pub fn newest_decisions(history: &History) -> BTreeMap<&DecidedRow, &Observation<Decision>> {
    merge::newest_decisions(&history.decisions)
}

/// Monthly returns of a benchmark. They are needed to compute the betas of other securities.
pub fn benchmark(
    history: &History,
    as_of: NaiveDate,
    rates: &ExchangeRates,
    policy: &SourcePolicy,
    rules: &Rules,
) -> MonthlyReturns {
    // The context also needs the newest known session, and `as_of` is used for it. The result is the same, because no
    // monthly return up to `as_of` depends on facts after `as_of`, or on the reporting currency.
    computed::benchmark_returns(
        history,
        &DerivationContext {
            as_of,
            newest: as_of,
            benchmark: None,
            rates,
            reporting_currency: "USD",
            policy,
            rules,
        },
    )
}

/// Computed metrics of a security, before their conversion to rows of the read tables.
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
        merge::closes_suffice(inputs.history, &inputs.merged.prices, inputs.as_of)
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
        provenance::covered_rows(&self.0)
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
