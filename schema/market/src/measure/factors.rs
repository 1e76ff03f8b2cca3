//! What happened on each ex-date: cash, spin-off values, splits, and the factor they put on earlier prices (R11).
//! Source: CRSP's factor to adjust prices, as in `adjust`.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::adjust::{Factor, Ratio};
use super::arithmetic::quotient;
use super::class::Class;
use super::merge::Payment;
use super::series::Series;
use crate::row::{Flag, Flags};

/// One ex-date that has passed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ExDay {
    pub ex_date: NaiveDate,
    pub split: Ratio,
    /// Cash per share, specials included, on the day's basis.
    pub cash: Decimal,
    /// Cash and spin-off value per share, on the day's basis.
    pub value: Decimal,
    /// The last raw close before the day, on its basis; looked up where something was paid.
    pub close_before: Option<Decimal>,
    /// 1 - value / close before; `None` when no factor applies.
    pub dividend_factor: Option<Decimal>,
    /// Whether some of it was paid in another currency than the prices'.
    pub foreign: bool,
}

impl ExDay {
    /// What earlier prices are multiplied by, splits aside.
    pub(crate) fn factor(&self) -> Decimal {
        self.dividend_factor.unwrap_or(Decimal::ONE)
    }
}

impl From<&ExDay> for Factor {
    fn from(day: &ExDay) -> Self {
        Self {
            ex_date: day.ex_date,
            split: day.split,
            dividend_factor: day.factor(),
            dividend: day.cash,
            value: (!day.foreign).then_some(day.value),
        }
    }
}

/// The ex-dates up to `as_of`, in order. `payments` are sorted by ex-date, `currency` is the prices'.
pub(crate) fn ex_days(
    payments: &[Payment<'_>],
    series: &Series<'_>,
    as_of: NaiveDate,
    currency: &str,
    flags: &mut Flags,
) -> Vec<ExDay> {
    let paid = payments.iter().filter(|payment| payment.ex_date <= as_of && payment.class != Class::Stock);
    let mut days: Vec<ExDay> = Vec::with_capacity(payments.len());
    for payment in paid {
        let known = days.last().is_some_and(|day| day.ex_date == payment.ex_date);
        if !known {
            days.push(empty(payment.ex_date));
        }
        let Some(day) = days.last_mut() else { continue };
        if payment.observation.record.currency == currency {
            day.value += payment.amount;
            if payment.class.in_ttm_total() {
                day.cash += payment.amount;
            }
        } else {
            day.foreign = true;
        }
    }
    for day in &mut days {
        set_factor(day, series, flags);
    }
    for split in series.splits.events().iter().filter(|split| split.ex_date <= as_of) {
        let position = days.partition_point(|day| day.ex_date < split.ex_date);
        if days.get(position).is_none_or(|day| day.ex_date != split.ex_date) {
            days.insert(position, empty(split.ex_date));
        }
        days[position].split = days[position].split.then(split.ratio);
    }
    days
}

fn empty(ex_date: NaiveDate) -> ExDay {
    ExDay {
        ex_date,
        split: Ratio::ONE,
        cash: Decimal::ZERO,
        value: Decimal::ZERO,
        close_before: None,
        dividend_factor: None,
        foreign: false,
    }
}

fn set_factor(day: &mut ExDay, series: &Series<'_>, flags: &mut Flags) {
    if series.bars.is_empty() {
        return;
    }
    day.close_before = series.close_before(day.ex_date);
    match day.close_before {
        None => flags.set(Flag::NoPrevClose),
        Some(close) if day.foreign || day.value >= close => flags.set(Flag::FactorSkipped),
        Some(close) => day.dividend_factor = quotient(day.value, close).map(|share| Decimal::ONE - share),
    }
}
