//! Which amounts of one day are two payments rather than two versions of one (R29).
//!
//! An income and a capital gain go ex on one day with one type; a vendor's correction looks the same. A file that has both
//! names them beside each other, and one observation that does so is enough, so that a file loaded again, alone or in
//! another cut, changes nothing.

use std::collections::BTreeSet;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::event::{Dividend, DividendType};
use crate::history::Observation;

/// Dates, type and currency: what distinguishes records without an id.
type NaturalKey<'a> = (Option<NaiveDate>, Option<NaiveDate>, DividendType, &'a str);

/// Pairs of amounts that some file named beside each other, by natural key.
#[derive(Debug, Default)]
pub(crate) struct Beside<'a> {
    pairs: BTreeSet<(NaturalKey<'a>, Decimal, Decimal)>,
}

impl<'a> Beside<'a> {
    /// What any observation of a security names.
    pub(crate) fn of(observations: &'a [Observation<Dividend>]) -> Self {
        let mut pairs = BTreeSet::new();
        for record in observations.iter().map(|observation| &observation.record) {
            // Equal amounts are one payment seen twice, whatever a file says.
            for other in record.beside.iter().filter(|other| **other != record.amount) {
                pairs.insert((natural_key(record), record.amount, *other));
                pairs.insert((natural_key(record), *other, record.amount));
            }
        }
        Self { pairs }
    }

    /// Whether two records are two payments of one day.
    pub(crate) fn are_two(&self, a: &Dividend, b: &Dividend) -> bool {
        !self.pairs.is_empty()
            && [a, b].iter().any(|record| self.pairs.contains(&(natural_key(record), a.amount, b.amount)))
    }
}

/// The natural key of a record; the record date stands in for a missing ex-date.
pub(super) fn natural_key(record: &Dividend) -> NaturalKey<'_> {
    (record.ex_date, record.record_date.filter(|_| record.ex_date.is_none()), record.r#type, &record.currency)
}
