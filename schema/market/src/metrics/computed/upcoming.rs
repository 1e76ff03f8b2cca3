//! Upcoming payments: the next declared payment and the projected payments (R19).

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::income::IncomeMetrics;
use super::inputs::MetricInputs;
use crate::metrics::arithmetic::quotient;
use crate::metrics::dividends::projection::{ExpectedExDate, project_ex_dates};
use crate::metrics::dividends::yields::{ForwardDividend, has_unequal_halves};
use crate::metrics::merge::Payment;
use crate::row::{DividendState, Flag, Flags};

/// Next declared payment, and projected payments.
#[derive(Debug, Default)]
pub(crate) struct UpcomingPayments {
    /// Index of the next declared payment in [`MetricInputs::payments`]; `None` if no future payment is declared.
    pub declared: Option<usize>,
    /// Projected payments. Their ex-dates are after the last known ex-date, and not before the as-of date.
    pub projections: Vec<ProjectedPayment>,
}

/// Payment that is expected but not declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProjectedPayment {
    pub ex_date: NaiveDate,
    /// Expected payment date; `None` if no past payment has a payment date.
    pub payment_date: Option<NaiveDate>,
    /// Amount per share, adjusted for splits up to the as-of date.
    pub amount: Decimal,
}

/// Finds the next declared payment and projects further payments. Sets a flag if no payment is declared although a
/// projected ex-date has passed.
pub(crate) fn upcoming(
    inputs: &MetricInputs<'_>,
    income: &IncomeMetrics,
    flags: &mut Flags,
) -> UpcomingPayments {
    if !inputs.is_listed {
        return UpcomingPayments::default();
    }
    let ahead = |payment: &Payment<'_>| payment.ex_date >= inputs.as_of && payment.class.in_ttm_total();
    let declared = inputs.payments().iter().position(ahead);
    let active = income.status == DividendState::Active;
    let Some(per_year) = inputs.payments_per_year().filter(|_| active) else {
        return UpcomingPayments { declared, projections: Vec::new() };
    };
    let expected = project_ex_dates(&inputs.ex_dates, per_year, inputs.as_of, inputs.market);
    let is_past = expected.first().is_some_and(|date| date.ex_date < inputs.as_of);
    flags.set_if(Flag::Overdue, declared.is_none() && is_past);
    let due = expected.into_iter().filter(|date| date.ex_date >= inputs.as_of);
    let projections = due.filter_map(|date| projection(inputs, income, per_year, date)).collect();
    UpcomingPayments { declared, projections }
}

fn projection(
    inputs: &MetricInputs<'_>,
    income: &IncomeMetrics,
    per_year: i32,
    date: ExpectedExDate,
) -> Option<ProjectedPayment> {
    Some(ProjectedPayment {
        ex_date: date.ex_date,
        payment_date: payment_date(inputs, date),
        amount: amount(inputs, &income.forward, per_year, date.repeats)?,
    })
}

/// Projected amount per share: the forward dividend divided by the number of payments a year. Funds and payers with
/// unequal halves instead repeat the amount of the earlier ex-date `repeats`.
fn amount(
    inputs: &MetricInputs<'_>,
    forward: &ForwardDividend,
    per_year: i32,
    repeats: NaiveDate,
) -> Option<Decimal> {
    let rates = &inputs.rates;
    let of_slot = || rates.binary_search_by_key(&repeats, |rate| rate.ex_date).map(|slot| rates[slot].amount);
    let rests_on = &rates[..rates.len() - usize::from(forward.latest_unusual)];
    match forward.amount {
        Some(forward) if per_year != 2 || !has_unequal_halves(rests_on) => {
            quotient(forward, Decimal::from(per_year))
        }
        _ => of_slot().ok().or_else(|| rates.last().map(|rate| rate.amount)),
    }
}

/// Projected payment date. The days from ex-date to payment date are those of the repeated payment, or else of the
/// newest payment with a known date.
fn payment_date(inputs: &MetricInputs<'_>, date: ExpectedExDate) -> Option<NaiveDate> {
    let regular = inputs.payments().iter().rev().filter(|payment| payment.class.is_regular());
    let lag = |payment: &Payment<'_>| {
        Some(payment.observation.record.payment_date?.signed_duration_since(payment.ex_date))
    };
    let same = regular.clone().filter(|payment| payment.ex_date == date.repeats).find_map(lag);
    let lag = same.or_else(|| regular.clone().find_map(lag))?;
    date.ex_date.checked_add_signed(lag).map(|day| inputs.market.business_day_on_or_after(day))
}
