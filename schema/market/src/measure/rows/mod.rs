//! Figures into rows: the one place where numbers are rounded.

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

pub(crate) use dividend::marks as dividend_marks;
pub(crate) use metrics::metrics;
pub(crate) use quarantine::{held, quarantined};

use super::adjust::Factor;
use super::derived::Derived;
use super::measured::Measured;

/// Makes the rows of a measured security.
pub(crate) fn derived(measured: Measured<'_>) -> Derived {
    let dividends = dividend::dividends(&measured);
    Derived { dividends, ..but_dividends(measured) }
}

/// Makes all rows but those of dividends.
pub(crate) fn but_dividends(mut measured: Measured<'_>) -> Derived {
    let quote = quote::quote(&measured);
    let quarantined = quarantine::quarantined(&measured);
    let payments = &measured.basis.merged.dividends.payments;
    Derived {
        stock: stock::stock(&measured, &quote, &quarantined),
        fundamentals: fundamentals::fundamentals(&measured),
        metrics: metrics(&measured, &quarantined),
        has_dividends: !payments.is_empty() || !measured.upcoming.projections.is_empty(),
        dividends: Vec::new(),
        splits: split::splits(&measured),
        factors: measured.basis.ex_days.iter().map(Factor::from).collect(),
        bars: std::mem::take(&mut measured.basis.merged.prices.bars),
        quote,
        quarantined,
    }
}
