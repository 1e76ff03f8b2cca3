//! A distribution as it counts, and what its amount and its ex-date are judged by.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::decided::Decided;
use super::known::Known;
use crate::event::{Dividend, DividendType};
use crate::measure::adjust::Splits;
use crate::measure::arithmetic::settle;
use crate::measure::class::Class;
use crate::measure::rules::{Outlier, Rules};
use crate::observation::Observation;

/// One distribution as it counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Payment<'a> {
    pub observation: &'a Observation<Dividend>,
    /// Position in the history's dividends.
    pub index: usize,
    /// The version that its id is made of.
    pub named: &'a Observation<Dividend>,
    /// Place among the payments of its day that nothing but their amounts tells apart.
    pub part: usize,
    pub ex_date: NaiveDate,
    /// Per share on the basis of the ex-date.
    pub amount: Decimal,
    /// Per share on the as-of date's basis.
    pub adjusted: Decimal,
    pub class: Class,
}

impl Payment<'_> {
    /// The type as declared, but `special` for a regular amount that the price shows to be one (R28).
    pub(crate) fn served_type(&self) -> DividendType {
        let record = &self.observation.record;
        let by_price =
            self.class == Class::Special && record.r#type.class(record.frequency) == Class::Regular;
        if by_price { DividendType::Special } else { record.r#type }
    }
}

/// What amounts and ex-dates are judged by.
pub(crate) struct Basics<'a> {
    /// Live splits, whenever announced: the basis of vendors' adjusted amounts.
    pub all_splits: &'a Splits,
    /// Live splits known on the as-of date.
    pub splits: &'a Splits,
    pub known: Known,
    /// What people decided about held rows.
    pub decided: &'a Decided<'a>,
    /// Newest day of a source's data.
    pub newest_day: &'a dyn Fn(&str) -> NaiveDate,
    /// The prices around it.
    pub neighbours: Neighbours<'a>,
    pub rules: &'a Rules,
}

/// The prices around a distribution.
pub(crate) struct Neighbours<'a> {
    /// The last raw close before a day, on that day's share basis.
    pub close_before: &'a dyn Fn(NaiveDate) -> Option<Decimal>,
    /// The first raw close from a day on, within five sessions, on that day's share basis.
    pub close_after: &'a dyn Fn(NaiveDate) -> Option<Decimal>,
    /// Currency of prices.
    pub currency: &'a str,
}

impl Neighbours<'_> {
    /// The close a distribution is measured by, when it is in the same currency.
    pub(crate) fn close_for(&self, record: &Dividend, day: NaiveDate) -> Option<Decimal> {
        if record.currency == self.currency { (self.close_before)(day) } else { None }
    }

    /// Whether the price fell on an ex-date by about an amount that is large enough to be seen in it.
    pub(super) fn show(&self, amount: Decimal, ex_date: NaiveDate, rules: &Outlier) -> bool {
        let Some((before, after)) = (self.close_before)(ex_date).zip((self.close_after)(ex_date)) else {
            return false;
        };
        let times = |factor: Decimal| settle(amount.saturating_mul(factor));
        let fall = settle(before - after);
        times(Decimal::ONE_HUNDRED / rules.special_share) >= settle(before)
            && times(rules.special_least_fall) <= fall
            && fall <= times(rules.special_most_fall)
    }
}
