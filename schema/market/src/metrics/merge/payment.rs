//! Payment that counts, and the context for validating its amount and ex-date.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::adjusted_steps::{AdjustedSteps, agrees};
use super::as_of::AsOfView;
use super::decisions::DecisionIndex;
use crate::event::{Dividend, DividendType};
use crate::metrics::arithmetic::{quotient, remove_division_error};
use crate::metrics::dividends::class::DividendClass;
use crate::metrics::prices::adjustment::Splits;
use crate::metrics::rules::{OutlierRules, Rules};
use crate::observation::Observation;

/// Distribution that counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Payment<'a> {
    pub observation: &'a Observation<Dividend>,
    /// Position in the history's dividends.
    pub index: usize,
    /// Observation whose id the payment has.
    pub named: &'a Observation<Dividend>,
    /// Number of the payment among the payments of its day that differ only in their amounts.
    pub part: usize,
    pub ex_date: NaiveDate,
    /// Amount per share on the basis of the ex-date.
    pub amount: Decimal,
    /// Amount per share on the as-of date's share basis.
    pub adjusted: Decimal,
    pub class: DividendClass,
}

impl Payment<'_> {
    /// Ex-date and declared type, which rows of one payment share.
    pub(crate) fn event_key(&self) -> (NaiveDate, DividendType) {
        (self.ex_date, self.observation.record.r#type)
    }

    /// Declaration date; the ex-date if it is earlier, or if no declaration date is known.
    pub(crate) fn declared_by(&self) -> NaiveDate {
        let declared = self.observation.record.declaration_date;
        declared.map_or(self.ex_date, |declared| declared.min(self.ex_date))
    }
}

/// Context for validating amounts and ex-dates.
pub(crate) struct ValidationContext<'a> {
    /// All live splits, including those announced later. Vendors adjust their amounts by these splits.
    pub all_splits: &'a Splits,
    /// Live splits visible on the as-of date.
    pub splits: &'a Splits,
    pub known: AsOfView,
    /// Review decisions.
    pub decided: &'a DecisionIndex<'a>,
    /// Function that gives the newest day of a source's data.
    pub newest_day: &'a dyn Fn(&str) -> NaiveDate,
    /// Prices around the ex-date.
    pub neighbours: PriceContext<'a>,
    /// Steps of the feeds' own adjusted closes (R40).
    pub adjusted_steps: &'a AdjustedSteps<'a>,
    pub rules: &'a Rules,
}

impl ValidationContext<'_> {
    /// Dividend factor on an ex-date according to a feed's own adjusted closes; `None` without such closes.
    pub(crate) fn adjusted_evidence(&self, ex_date: NaiveDate) -> Option<Decimal> {
        self.adjusted_steps.factor(ex_date)
    }

    /// True if a feed's own adjusted closes contain an amount that was paid in the prices' currency (R40).
    pub(crate) fn adjusted_closes_contain(&self, amount: Decimal, ex_date: NaiveDate) -> bool {
        let evidence = self.adjusted_evidence(ex_date).zip((self.neighbours.close_before)(ex_date));
        let paid =
            evidence.and_then(|(factor, close)| Some((factor, Decimal::ONE - quotient(amount, close)?)));
        paid.is_some_and(|(factor, ours)| agrees(factor, ours, &self.rules.absence))
    }
}

/// Prices around a distribution.
pub(crate) struct PriceContext<'a> {
    /// Last raw close before a day, on that day's share basis.
    pub close_before: &'a dyn Fn(NaiveDate) -> Option<Decimal>,
    /// First raw close from a day on, within five sessions, on that day's share basis.
    pub close_after: &'a dyn Fn(NaiveDate) -> Option<Decimal>,
    /// Currency of prices.
    pub currency: &'a str,
}

impl PriceContext<'_> {
    /// Last close before a distribution; `None` if the distribution is in another currency than the prices.
    pub(crate) fn close_for(&self, record: &Dividend, day: NaiveDate) -> Option<Decimal> {
        if record.currency == self.currency { (self.close_before)(day) } else { None }
    }

    /// True if the amount is large enough to be visible in the price, and the price fell by about the amount on
    /// the ex-date.
    pub(crate) fn has_visible_fall(&self, amount: Decimal, ex_date: NaiveDate, rules: &OutlierRules) -> bool {
        let Some((before, after)) = (self.close_before)(ex_date).zip((self.close_after)(ex_date)) else {
            return false;
        };
        let times = |factor: Decimal| remove_division_error(amount.saturating_mul(factor));
        let fall = remove_division_error(before - after);
        times(Decimal::ONE_HUNDRED / rules.special_share) >= remove_division_error(before)
            && times(rules.special_least_fall) <= fall
            && fall <= times(rules.special_most_fall)
    }
}
