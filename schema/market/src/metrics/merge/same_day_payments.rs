//! Distinction of several payments on one ex-date from versions of one payment (R29).
//!
//! An income and a capital gain may go ex on one day with one type, and a vendor's correction looks the same.
//! A file with both lists them as siblings. One such observation is enough, so that loading the file again,
//! alone or in other parts, changes nothing.

use std::collections::BTreeSet;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::event::{Dividend, DividendType};
use crate::history::Observation;

/// Natural key: dates, type and currency, which identify records without an id.
type NaturalKey<'a> = (Option<NaiveDate>, Option<NaiveDate>, DividendType, &'a str);

/// Pairs of amounts that a file listed as two payments of one day, by natural key.
#[derive(Debug, Default)]
pub(crate) struct SameDayPayments<'a> {
    pairs: BTreeSet<(NaturalKey<'a>, Decimal, Decimal)>,
}

impl<'a> SameDayPayments<'a> {
    /// Collects the siblings that any observation of a security lists.
    pub(crate) fn collect(observations: &'a [Observation<Dividend>]) -> Self {
        let mut pairs = BTreeSet::new();
        for record in observations.iter().map(|observation| &observation.record) {
            // Equal amounts are always one payment.
            for other in record.sibling_amounts.iter().filter(|other| **other != record.amount) {
                pairs.insert((natural_key(record), record.amount, *other));
                pairs.insert((natural_key(record), *other, record.amount));
            }
        }
        Self { pairs }
    }

    /// True if two records are two payments of one day.
    pub(crate) fn are_distinct(&self, a: &Dividend, b: &Dividend) -> bool {
        !self.pairs.is_empty()
            && [a, b].iter().any(|record| self.pairs.contains(&(natural_key(record), a.amount, b.amount)))
    }
}

/// Natural key of a record, with the record date in place of a missing ex-date.
pub(crate) fn natural_key(record: &Dividend) -> NaturalKey<'_> {
    (record.ex_date, record.record_date.filter(|_| record.ex_date.is_none()), record.r#type, &record.currency)
}
