//! Several payments of one ex-date, as opposed to versions of one payment (R29).
//!
//! Two rows of equal ex-date and type may differ in amount. They are two payments, such as an income and a capital
//! gain, or one payment and the vendor's correction of its amount. If both rows are in one file, they are two payments.
//! The second row in the file then lists the amount of the first row as a sibling. One listed sibling is enough to
//! distinguish the payments, so loading the file again, whole or in parts, changes nothing.

use std::collections::BTreeSet;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::event::{Dividend, DividendType};
use crate::history::Observation;

/// Natural key of a record without an id: the ex-date (or the record date if there is no ex-date), type and currency.
type NaturalKey<'a> = (Option<NaiveDate>, Option<NaiveDate>, DividendType, &'a str);

/// Pairs of amounts that a file lists as different payments of one day, by natural key.
#[derive(Debug, Default)]
pub(crate) struct SameDayPayments<'a> {
    pairs: BTreeSet<(NaturalKey<'a>, Decimal, Decimal)>,
}

impl<'a> SameDayPayments<'a> {
    /// Collects the sibling amounts of all observations of a security.
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

    /// True if two records are different payments of one day, not versions of one payment.
    pub(crate) fn are_distinct(&self, a: &Dividend, b: &Dividend) -> bool {
        !self.pairs.is_empty()
            && [a, b].iter().any(|record| self.pairs.contains(&(natural_key(record), a.amount, b.amount)))
    }
}

/// Natural key of a record, with the record date only if the ex-date is missing.
pub(crate) fn natural_key(record: &Dividend) -> NaturalKey<'_> {
    (record.ex_date, record.record_date.filter(|_| record.ex_date.is_none()), record.r#type, &record.currency)
}
