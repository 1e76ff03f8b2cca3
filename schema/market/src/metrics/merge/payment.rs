//! Payment used in the figures, and the context in which its amount and ex-date are validated.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::as_of::AsOfView;
use super::decisions::DecisionIndex;
use super::implied_factors::{ImpliedFactors, agrees};
use crate::event::{Dividend, DividendType};
use crate::metrics::arithmetic::{quotient, remove_division_error};
use crate::metrics::calendar::add_sessions;
use crate::metrics::dividends::class::DividendClass;
use crate::metrics::prices::adjustment::Splits;
use crate::metrics::prices::series::PriceSeries;
use crate::metrics::rules::{OutlierRules, Rules};
use crate::observation::Observation;

/// The price fall of an ex-date is measured only if a close exists at most this number of sessions after the ex-date.
const PRICED_WITHIN: i32 = 5;

/// Distribution that the figures use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Payment<'a> {
    pub observation: &'a Observation<Dividend>,
    /// Index of the observation in the dividends of the history.
    pub index: usize,
    /// Version of the record that has the security's earliest symbol. This symbol is part of the payment's id.
    pub named: &'a Observation<Dividend>,
    /// Number of the payment among the payments of one day that differ only in the amount. The payment with the
    /// smallest amount has the number 0. The number is also 0 if there is only one payment.
    pub ordinal: usize,
    pub ex_date: NaiveDate,
    /// Amount per share on the share basis of the ex-date.
    pub amount: Decimal,
    /// Amount per share on the as-of date's share basis.
    pub adjusted: Decimal,
    pub class: DividendClass,
}

impl Payment<'_> {
    /// Ex-date and declared type of the payment. They are the same in all rows of one payment.
    pub(crate) fn event_key(&self) -> (NaiveDate, DividendType) {
        (self.ex_date, self.observation.record.r#type)
    }

    /// Declaration date of the payment. If it is unknown or after the ex-date, the ex-date is returned.
    pub(crate) fn declared_by(&self) -> NaiveDate {
        let declared = self.observation.record.declaration_date;
        declared.map_or(self.ex_date, |declared| declared.min(self.ex_date))
    }
}

/// Facts against which the amounts and ex-dates of payments are checked: splits, prices and decisions.
pub(crate) struct ValidationContext<'a> {
    /// All splits that are not withdrawn. Splits announced after the as-of date are included, because vendors may
    /// already have adjusted the amounts for these splits.
    pub all_splits: &'a Splits,
    /// Splits visible on the as-of date.
    pub splits: &'a Splits,
    pub known: AsOfView,
    /// Review decisions about rows of the security.
    pub decided: &'a DecisionIndex<'a>,
    /// Function that returns the newest day of a source's data.
    pub newest_day: &'a dyn Fn(&str) -> NaiveDate,
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
        paid.is_some_and(|(factor, ours)| agrees(factor, ours, &self.rules.absence))
    }
}

/// Prices of a security and their currency. They are needed to find the closes before and after an ex-date.
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

    /// True if the price fell by about `amount` from the last close before the ex-date to the first close on or after
    /// it. False if `amount` is too small a part of the close, so that its effect is not visible.
    ///
    /// The limits are the parameters `outlier.special_…`.
    pub(crate) fn has_visible_fall(&self, amount: Decimal, ex_date: NaiveDate, rules: &OutlierRules) -> bool {
        let closes = self.series.close_before(ex_date).zip(self.close_after(ex_date));
        let Some((before, after)) = closes else { return false };
        let times = |factor: Decimal| remove_division_error(amount.saturating_mul(factor));
        let fall = remove_division_error(before - after);
        times(Decimal::ONE_HUNDRED / rules.special_share) >= remove_division_error(before)
            && times(rules.special_least_fall) <= fall
            && fall <= times(rules.special_most_fall)
    }
}
