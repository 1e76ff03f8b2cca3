//! Events of each ex-date of a security up to the as-of date: cash, spin-off value, splits and price factor (R11). The
//! module [`adjustment`](crate::metrics::prices::adjustment) defines the price factor.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::metrics::arithmetic::quotient;
use crate::metrics::dividends::status::DividendClass;
use crate::metrics::merge::Payment;
use crate::metrics::prices::adjustment::{AdjustmentFactor, Ratio};
use crate::metrics::prices::series::PriceSeries;
use crate::row::{Flag, Flags};

/// Distributions and splits of one ex-date.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct ExDateEvents {
    pub ex_date: NaiveDate,
    pub split: Ratio,
    /// Product of the ratios of events that change the price but not the share count, such as spin-offs (R35).
    pub price_only: Ratio,
    /// Cash per share, specials included. Not adjusted for splits after the ex-date.
    pub cash: Decimal,
    /// Cash and spin-off value per share. Not adjusted for splits after the ex-date.
    pub value: Decimal,
    /// Last close before the ex-date, adjusted for splits and spin-offs up to and including the ex-date. `None` if the
    /// ex-date has no distribution, or if no earlier close is known.
    pub close_before: Option<Decimal>,
    /// Price factor of the distributions: 1 - `value` / `close_before`. `None` if `close_before` is `None`, if `value`
    /// is at least `close_before`, or if `foreign` is true.
    pub dividend_factor: Option<Decimal>,
    /// True if a distribution of the ex-date is in another currency than the prices, and no rate is known.
    pub foreign: bool,
}

impl ExDateEvents {
    /// Factor that adjusts prices before the ex-date for the distributions; 1 if `dividend_factor` is `None`.
    pub(crate) fn factor(&self) -> Decimal {
        self.dividend_factor.unwrap_or(Decimal::ONE)
    }
}

impl From<&ExDateEvents> for AdjustmentFactor {
    fn from(day: &ExDateEvents) -> Self {
        Self {
            ex_date: day.ex_date,
            split: day.split,
            dividend_factor: day.factor(),
            dividend: day.cash,
            value: (!day.foreign).then_some(day.value),
            price_only: day.price_only,
        }
    }
}

/// Collects the events of each ex-date up to `as_of`. `payments` are sorted by ex-date; `currency` is the currency of
/// the prices. If a spin-off also has a split record, only this record is used.
pub(crate) fn ex_days(
    payments: &[Payment<'_>],
    series: &PriceSeries<'_>,
    as_of: NaiveDate,
    currency: &str,
    flags: &mut Flags,
) -> Vec<ExDateEvents> {
    let paid =
        payments.iter().filter(|payment| payment.ex_date <= as_of && payment.class != DividendClass::Stock);
    let events = series.splits.events();
    let has_ratio =
        |ex_date: NaiveDate| events.iter().any(|event| event.is_price_only && event.ex_date == ex_date);
    let mut days: Vec<ExDateEvents> = Vec::with_capacity(payments.len());
    for payment in paid {
        if payment.class == DividendClass::SpinOff && has_ratio(payment.ex_date) {
            continue;
        }
        let known = days.last().is_some_and(|day| day.ex_date == payment.ex_date);
        if !known {
            days.push(ExDateEvents { ex_date: payment.ex_date, ..ExDateEvents::default() });
        }
        let Some(day) = days.last_mut() else { continue };
        match payment.in_price_currency(payment.amount, currency) {
            Some(amount) => {
                day.value += amount;
                if payment.class.in_ttm_total() {
                    day.cash += amount;
                }
            }
            None => day.foreign = true,
        }
    }
    for day in &mut days {
        set_factor(day, series, flags);
    }
    for event in events.iter().filter(|event| event.ex_date <= as_of) {
        let position = days.partition_point(|day| day.ex_date < event.ex_date);
        if days.get(position).is_none_or(|day| day.ex_date != event.ex_date) {
            days.insert(position, ExDateEvents { ex_date: event.ex_date, ..ExDateEvents::default() });
        }
        let day = &mut days[position];
        let ratio = if event.is_price_only { &mut day.price_only } else { &mut day.split };
        *ratio = ratio.then(event.ratio);
    }
    days
}

fn set_factor(day: &mut ExDateEvents, series: &PriceSeries<'_>, flags: &mut Flags) {
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
