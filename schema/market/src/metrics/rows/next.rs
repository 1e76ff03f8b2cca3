//! Next ex-dividend date and amount, for all rows that contain them.
//!
//! Rounding of figures that may be unknown, for output.

use rust_decimal::Decimal;

use crate::decimal::ExactDecimal;
use crate::metrics::arithmetic;
use crate::metrics::computed::ComputedMetrics;
use crate::metrics::computed::upcoming::ProjectedPayment;
use crate::row::{Flag, NextDividend, NextStatus};

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
