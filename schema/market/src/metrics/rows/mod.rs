//! Conversion of computed metrics to rows. Figures are rounded only in this conversion.

mod derived;
mod dividend;
mod fundamentals;
mod id;
mod metrics;
mod next;
mod quarantine;
mod quote;
mod rounded;
mod split;
mod stock;

pub use derived::DerivedRows;
pub(crate) use dividend::fingerprints as dividend_fingerprints;
pub(crate) use metrics::metrics;
pub(crate) use quarantine::{quarantined, quarantined_with_keys};

use super::computed::ComputedMetrics;
use super::prices::adjustment::AdjustmentFactor;

/// Converts computed metrics to all rows.
pub(crate) fn derived(computed: ComputedMetrics<'_>) -> DerivedRows {
    let dividends = dividend::dividends(&computed);
    DerivedRows { dividends, ..without_dividends(computed) }
}

/// Converts computed metrics to all rows except dividends.
pub(crate) fn without_dividends(mut computed: ComputedMetrics<'_>) -> DerivedRows {
    let quote = quote::quote(&computed);
    let quarantined = quarantine::quarantined(&computed);
    let payments = &computed.inputs.merged.dividends.payments;
    DerivedRows {
        stock: stock::stock(&computed, &quote, &quarantined),
        fundamentals: fundamentals::fundamentals(&computed),
        metrics: metrics(&computed, &quarantined),
        has_dividends: !payments.is_empty() || !computed.upcoming.projections.is_empty(),
        dividends: Vec::new(),
        splits: split::splits(&computed),
        factors: computed.inputs.ex_days.iter().map(AdjustmentFactor::from).collect(),
        bars: std::mem::take(&mut computed.inputs.merged.prices.bars),
        quote,
        quarantined,
    }
}
