//! Conversion of computed metrics to rows. Figures are rounded only in this conversion.
//!
//! Rows of one security in the read tables.
//!
//! Next ex-dividend date and amount, for all rows that contain them.
//!
//! Rounding of figures that may be unknown, for output.

mod dividend;
mod fundamentals;
mod id;
mod metrics;
mod quarantine;
mod quote;
mod split;
mod stock;

use std::sync::Arc;

pub(crate) use dividend::fingerprints as dividend_fingerprints;
pub(crate) use metrics::metrics;
pub(crate) use quarantine::{quarantined, quarantined_with_keys};
use rust_decimal::Decimal;

use crate::bars::Bars;
use crate::decimal::ExactDecimal;
use crate::metrics::arithmetic;
use crate::metrics::computed::ComputedMetrics;
use crate::metrics::computed::upcoming::ProjectedPayment;
use crate::metrics::prices::adjustment::AdjustmentFactor;
use crate::row;
use crate::row::{Flag, NextDividend, NextStatus, SplitStatus};

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

/// Amount of a projected payment on the share basis of its ex-date. `projection.amount` is on the share basis of the
/// as-of date. The two amounts differ if an announced split becomes effective between the two dates.
pub(crate) fn declared(computed: &ComputedMetrics<'_>, projection: &ProjectedPayment) -> Decimal {
    let splits = &computed.inputs.merged.split_table;
    splits.ratio_to_basis(computed.inputs.as_of, projection.ex_date).apply(projection.amount)
}

/// Next ex-dividend date and amount: the earliest declared one, or else the first projected one. `None` if there is
/// neither, or if the next declaration is overdue.
pub(crate) fn next_dividend(computed: &ComputedMetrics<'_>) -> Option<NextDividend> {
    if let Some(index) = computed.upcoming.declared {
        let payment = computed.inputs.payments()[index];
        return Some(NextDividend {
            ex_date: payment.ex_date,
            payment_date: payment.observation.record.payment_date,
            amount: amount(Some(payment.amount_on_ex_date())),
            status: NextStatus::Declared,
        });
    }
    if computed.flags.has(Flag::Overdue) {
        return None;
    }
    let projection = computed.upcoming.projections.first()?;
    Some(NextDividend {
        ex_date: projection.ex_date,
        payment_date: projection.payment_date,
        amount: amount(Some(declared(computed, projection))),
        status: NextStatus::Projected,
    })
}

/// Rounds a percent or ratio to 4 decimal places.
pub(crate) fn percent(value: Option<Decimal>) -> Option<ExactDecimal> {
    value.map(arithmetic::percent)
}

/// Rounds an amount per share to 6 decimal places.
pub(crate) fn amount(value: Option<Decimal>) -> Option<ExactDecimal> {
    value.map(arithmetic::amount)
}
