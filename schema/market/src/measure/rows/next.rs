//! What is paid next, as every row says it.

use rust_decimal::Decimal;

use super::rounded::amount;
use crate::measure::measured::Measured;
use crate::measure::measured::upcoming::Projection;
use crate::row::{Flag, NextDividend, NextStatus};

/// A projected amount on the share basis of its own ex-date, which an announced split may change.
pub(super) fn declared(measured: &Measured<'_>, projection: &Projection) -> Decimal {
    let splits = &measured.basis.merged.split_table;
    splits.carry(measured.basis.as_of, projection.ex_date).apply(projection.amount)
}

/// The next ex-dividend date: the earliest declared one, else the first expected one.
pub(super) fn next(measured: &Measured<'_>) -> Option<NextDividend> {
    if let Some(index) = measured.upcoming.declared {
        let payment = measured.basis.payments()[index];
        return Some(NextDividend {
            ex_date: payment.ex_date,
            payment_date: payment.observation.record.payment_date,
            amount: amount(Some(payment.amount)),
            status: NextStatus::Declared,
        });
    }
    if measured.flags.has(Flag::Overdue) {
        return None;
    }
    let projection = measured.upcoming.projections.first()?;
    Some(NextDividend {
        ex_date: projection.ex_date,
        payment_date: projection.payment_date,
        amount: amount(Some(declared(measured, projection))),
        status: NextStatus::Projected,
    })
}
