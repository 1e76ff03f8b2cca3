//! What comes next: the next declared payment and the payments to expect (R19).

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::basis::Basis;
use super::income::Income;
use crate::measure::arithmetic::quotient;
use crate::measure::calendar::session_on_or_after;
use crate::measure::merge::Payment;
use crate::measure::next::{Expected, expected};
use crate::measure::yields::{Forward, has_unequal_halves};
use crate::row::{DividendState, Flag, Flags};

/// What lies ahead.
#[derive(Debug, Default)]
pub(crate) struct Upcoming {
    /// Position of the next declared payment among the merged ones.
    pub declared: Option<usize>,
    /// Expected payments after the last known one, from the as-of date on.
    pub projections: Vec<Projection>,
}

/// A payment that is expected but not declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Projection {
    pub ex_date: NaiveDate,
    /// As long after the ex-date as the payment it repeats; `None` when no payment date was ever known.
    pub payment_date: Option<NaiveDate>,
    /// Per share on the as-of date's basis.
    pub amount: Decimal,
}

/// Looks ahead; flags an expected ex-date that passed without a declaration.
pub(crate) fn upcoming(basis: &Basis<'_>, income: &Income, flags: &mut Flags) -> Upcoming {
    if !basis.is_listed {
        return Upcoming::default();
    }
    let ahead = |payment: &Payment<'_>| payment.ex_date >= basis.as_of && payment.class.in_ttm_total();
    let declared = basis.payments().iter().position(ahead);
    let active = income.status == DividendState::Active;
    let Some(per_year) = basis.payments_per_year().filter(|_| active) else {
        return Upcoming { declared, projections: Vec::new() };
    };
    let expected = expected(&basis.ex_dates, per_year, basis.as_of);
    if declared.is_none() && expected.first().is_some_and(|date| date.ex_date < basis.as_of) {
        flags.set(Flag::Overdue);
    }
    let due = expected.into_iter().filter(|date| date.ex_date >= basis.as_of);
    let projections = due.filter_map(|date| projection(basis, income, per_year, date)).collect();
    Upcoming { declared, projections }
}

fn projection(basis: &Basis<'_>, income: &Income, per_year: i32, date: Expected) -> Option<Projection> {
    Some(Projection {
        ex_date: date.ex_date,
        payment_date: payment_date(basis, date),
        amount: amount(basis, &income.forward, per_year, date.repeats)?,
    })
}

/// What is expected of one payment, so that those of a year add up to the indicated dividend.
///
/// Funds have none: there it is what the same slot paid last year.
fn amount(basis: &Basis<'_>, forward: &Forward, per_year: i32, repeats: NaiveDate) -> Option<Decimal> {
    let rates = &basis.rates;
    let of_slot = || rates.binary_search_by_key(&repeats, |rate| rate.ex_date).map(|slot| rates[slot].amount);
    let rests_on = &rates[..rates.len() - usize::from(forward.latest_unusual)];
    match forward.amount {
        Some(forward) if per_year != 2 || !has_unequal_halves(rests_on, &basis.rules.forward) => {
            quotient(forward, Decimal::from(per_year))
        }
        _ => of_slot().ok().or_else(|| rates.last().map(|rate| rate.amount)),
    }
}

/// The lag of the payment that is repeated, else of the newest one that names its payment date, rolled to a session.
fn payment_date(basis: &Basis<'_>, date: Expected) -> Option<NaiveDate> {
    let regular = basis.payments().iter().rev().filter(|payment| payment.class.is_regular());
    let lag = |payment: &Payment<'_>| {
        Some(payment.observation.record.payment_date?.signed_duration_since(payment.ex_date))
    };
    let same = regular.clone().filter(|payment| payment.ex_date == date.repeats).find_map(lag);
    let lag = same.or_else(|| regular.clone().find_map(lag))?;
    date.ex_date.checked_add_signed(lag).map(session_on_or_after)
}
