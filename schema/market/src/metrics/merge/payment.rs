//! Payment used in the figures, and the context in which its amount and ex-date are validated.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::as_of::AsOfView;
use super::decisions::DecisionIndex;
use super::feed_adjustments::FeedAdjustments;
use super::implied_factors::{ImpliedFactors, agrees};
use crate::event::{Dividend, DividendType};
use crate::metrics::arithmetic::{exact, quotient, remove_division_error};
use crate::metrics::calendar::add_sessions;
use crate::metrics::dividends::ex_date::Settlement;
use crate::metrics::dividends::schedule::{AmountDoubt, ScheduleRow};
use crate::metrics::dividends::status::DividendClass;
use crate::metrics::exchange_rates::Rate;
use crate::metrics::prices::adjustment::Splits;
use crate::metrics::prices::series::PriceSeries;
use crate::metrics::rules::Rules;
use crate::observation::Observation;

/// Maximum number of sessions from an ex-date to the close that shows the price fall.
const PRICED_WITHIN: i32 = 5;
/// The effect of an amount on the price is visible only if the close before the ex-date is at most this multiple of it.
const VISIBLE_MULTIPLE: Decimal = exact("20");
/// Smallest and largest fall of the price on the ex-date that prove an amount, as multiples of the amount.
const LEAST_FALL: Decimal = exact("0.6");
const MOST_FALL: Decimal = exact("1.4");

/// Distribution that the figures use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Payment<'a> {
    pub observation: &'a Observation<Dividend>,
    /// Index of the observation in the dividends of the history.
    pub index: usize,
    /// Version of the record that has the security's earliest symbol. This symbol is part of the payment's id.
    pub named: &'a Observation<Dividend>,
    /// Index among the payments that differ only in the amount, in ascending order of amount. A single payment has the
    /// index 0.
    pub ordinal: usize,
    pub ex_date: NaiveDate,
    /// Ex-date that follows from the record date, if the vendor's ex-date differs from it (R1).
    pub expected: Option<NaiveDate>,
    /// Amount per share on the ex-date, not adjusted for later splits.
    pub amount: Decimal,
    /// Amount per share, adjusted for splits up to the as-of date.
    pub adjusted: Decimal,
    /// The same payment in the dividend currency: amount per share, adjusted for splits up to the as-of date. `None` if
    /// the payment is in the dividend currency itself, or is not known in it (R39).
    pub declared: Option<Decimal>,
    /// Rate from the payment's currency to the currency of the prices (R42); `None` for a payment in the currency of the
    /// prices, and if no rate is known.
    pub rate: Option<Rate<'a>>,
    /// Part of `adjusted` that is special, because another row of the ex-date says so (R45). 0 for most payments.
    pub special_part: Decimal,
    pub class: DividendClass,
    /// Index of the payment's reading in the payment schedule. `None` before the schedule is built, and for payments
    /// that are not declared as regular or are not in the dividend currency.
    pub reading: Option<usize>,
}

impl Payment<'_> {
    /// Row of the payment schedule on the payment's ex-date.
    pub(crate) fn schedule_row(&self, amount: Decimal, doubt: Option<AmountDoubt>) -> ScheduleRow {
        let Dividend { frequency: tag, payment_date, .. } = self.observation.record;
        ScheduleRow { ex_date: self.ex_date, amount, tag, payment_date, doubt }
    }

    /// Ex-date and declared type of the payment. They are the same in all rows of one payment.
    pub(crate) fn event_key(&self) -> (NaiveDate, DividendType) {
        (self.ex_date, self.observation.record.r#type)
    }

    /// Amount per share in the dividend currency, adjusted for splits up to the as-of date. `None` if the payment is not
    /// known in this currency.
    pub(crate) fn amount_in(&self, dividend_currency: &str) -> Option<Decimal> {
        if self.observation.record.currency == dividend_currency {
            Some(self.adjusted)
        } else {
            self.declared
        }
    }

    /// Converts an amount of the payment to the currency of the prices. `None` without a rate.
    pub(crate) fn in_price_currency(&self, amount: Decimal, price_currency: &str) -> Option<Decimal> {
        if self.observation.record.currency == price_currency {
            return Some(amount);
        }
        self.rate?.convert(amount)
    }

    /// Amount per share on the ex-date, in the dividend currency if the payment is known in it.
    pub(crate) fn amount_on_ex_date(&self) -> Decimal {
        let declared = self.declared.and_then(|declared| {
            quotient(declared.checked_mul(self.amount)?, self.adjusted).map(remove_division_error)
        });
        declared.unwrap_or(self.amount)
    }

    /// Amount that the payment schedule reads: [`Self::amount_in`] without the known special part.
    pub(crate) fn scheduled(&self, dividend_currency: &str) -> Option<Decimal> {
        let amount = self.amount_in(dividend_currency)?;
        if self.special_part.is_zero() {
            return Some(amount);
        }
        Some(amount - quotient(amount.checked_mul(self.special_part)?, self.adjusted)?)
    }

    /// Declaration date of the payment. The ex-date replaces an unknown date, and a date after the ex-date.
    pub(crate) fn declared_by(&self) -> NaiveDate {
        let declared = self.observation.record.declaration_date;
        declared.map_or(self.ex_date, |declared| declared.min(self.ex_date))
    }
}

/// Facts against which the amounts and ex-dates of payments are checked: splits, prices and decisions.
pub(crate) struct ValidationContext<'a> {
    /// Splits visible on the as-of date.
    pub splits: &'a Splits,
    /// Adjustments of the feeds' own rows.
    pub feeds: &'a FeedAdjustments<'a>,
    pub known: AsOfView,
    /// Settlement times of the security's market.
    pub settlement: Settlement,
    /// Review decisions about rows of the security.
    pub decided: &'a DecisionIndex<'a>,
    /// Prices of the security, from which the closes before and after an ex-date are taken.
    pub neighbours: PriceContext<'a>,
    /// Dividend factors that the feeds' adjusted closes imply (R40).
    pub implied_factors: &'a ImpliedFactors<'a>,
    pub rules: &'a Rules,
}

impl ValidationContext<'_> {
    /// True if a feed's adjusted closes show a payment of `amount` per share on the ex-date (R40). `amount` is in the
    /// currency of the prices.
    pub(crate) fn adjusted_closes_contain(&self, amount: Decimal, ex_date: NaiveDate) -> bool {
        let implied = self.implied_factors.factor(ex_date);
        let evidence = implied.zip(self.neighbours.series.close_before(ex_date));
        let paid =
            evidence.and_then(|(factor, close)| Some((factor, Decimal::ONE - quotient(amount, close)?)));
        paid.is_some_and(|(factor, ours)| agrees(factor, ours))
    }
}

/// Prices of a security and their currency. The closes before and after an ex-date come from these prices.
pub(crate) struct PriceContext<'a> {
    pub series: PriceSeries<'a>,
    /// ISO 4217 currency of the prices.
    pub currency: &'a str,
}

impl PriceContext<'_> {
    /// Last close before `day`, the ex-date of a distribution. `None` without an earlier close, or if the distribution
    /// and the prices are in different currencies.
    pub(crate) fn close_for(&self, record: &Dividend, day: NaiveDate) -> Option<Decimal> {
        if record.currency == self.currency { self.series.close_before(day) } else { None }
    }

    /// First close on or after a day, on the price basis of that day. `None` without a close within five sessions.
    fn close_after(&self, day: NaiveDate) -> Option<Decimal> {
        let first = self.series.at_or_after(day)?;
        let is_near = self.series.date(first) <= add_sessions(day, PRICED_WITHIN);
        is_near.then(|| self.series.close_on_basis(first, day))
    }

    /// True if the price fell by about `amount` on the ex-date. False if `amount` is too small to be visible in the
    /// price.
    pub(crate) fn has_visible_fall(&self, amount: Decimal, ex_date: NaiveDate) -> bool {
        let closes = self.series.close_before(ex_date).zip(self.close_after(ex_date));
        let Some((before, after)) = closes else { return false };
        let times = |factor: Decimal| remove_division_error(amount.saturating_mul(factor));
        let fall = remove_division_error(before - after);
        times(VISIBLE_MULTIPLE) >= remove_division_error(before)
            && times(LEAST_FALL) <= fall
            && fall <= times(MOST_FALL)
    }
}
