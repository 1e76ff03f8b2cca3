//! Different payments of one ex-date, as opposed to versions of one payment (R29).
//!
//! Two rows with the same ex-date and type may have different amounts, for one of two reasons. Either they are two
//! payments, such as an income and a capital gain. Or the vendor corrected the amount of one payment.
//!
//! If both rows are in one file, ingest finds out which reason applies. If the rows are two payments, the second row
//! lists the amount of the first row in `sibling_amounts`. This mark on one of the two rows is enough. If the file is
//! loaded again, whole or in parts, the result is the same.

use std::collections::BTreeSet;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::event::{Dividend, DividendType};
use crate::history::Observation;

/// Natural key, which identifies a record without an id: ex-date, type and currency. If the ex-date is missing, the
/// record date replaces it.
type NaturalKey<'a> = (Option<NaiveDate>, Option<NaiveDate>, DividendType, &'a str);

/// Sibling amounts: pairs of amounts of two different payments with the same natural key.
#[derive(Debug, Default)]
pub(crate) struct SameDayPayments<'a> {
    pairs: BTreeSet<(NaturalKey<'a>, Decimal, Decimal)>,
}

impl<'a> SameDayPayments<'a> {
    /// Collects the sibling amounts (amounts of different payments of one day) from all observations of a security.
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

/// Natural key of a record. The record date is part of it only if the ex-date is missing.
pub(crate) fn natural_key(record: &Dividend) -> NaturalKey<'_> {
    (record.ex_date, record.record_date.filter(|_| record.ex_date.is_none()), record.r#type, &record.currency)
}
