//! Figures into rows: the one place where numbers are rounded.

mod dividend;
mod fundamentals;
mod id;
mod metrics;
mod quarantine;
mod quote;
mod split;
mod stock;

pub(crate) use metrics::metrics;
pub(crate) use quarantine::quarantined;
use rust_decimal::Decimal;

use super::measured::Measured;
use super::measured::upcoming::Projection;
use super::{Derived, Factor, arithmetic};
use crate::row::{Flag, NextDividend, NextStatus};
use crate::value::Exact;

/// Makes the rows of a measured security.
pub(crate) fn derived(mut measured: Measured<'_>) -> Derived {
    let quote = quote::quote(&measured);
    let quarantined = quarantine::quarantined(&measured);
    Derived {
        stock: stock::stock(&measured, &quote, &quarantined),
        fundamentals: fundamentals::fundamentals(&measured),
        metrics: metrics(&measured, &quarantined),
        dividends: dividend::dividends(&measured),
        splits: split::splits(&measured),
        factors: measured.basis.ex_days.iter().map(Factor::from).collect(),
        bars: std::mem::take(&mut measured.basis.merged.prices.bars),
        quote,
        quarantined,
    }
}

fn percent(value: Option<Decimal>) -> Option<Exact> {
    value.map(arithmetic::percent)
}

fn amount(value: Option<Decimal>) -> Option<Exact> {
    value.map(arithmetic::amount)
}

/// A projected amount on the share basis of its own ex-date, which an announced split may change.
fn declared(measured: &Measured<'_>, projection: &Projection) -> Decimal {
    let splits = &measured.basis.merged.split_table;
    splits.carry(measured.basis.as_of, projection.ex_date).apply(projection.amount)
}

/// The next ex-dividend date: the earliest declared one, else the first expected one.
fn next(measured: &Measured<'_>) -> Option<NextDividend> {
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
