//! Record ids. They are unique in the whole service, and a rebuild of the read tables does not change them.
//!
//! With a vendor's id, a record id is `symbol/source/kind/vendor's id`. Without a vendor's id, it is
//! `symbol/source/kind@date.type.currency`; a split has only the date after `@`. If the vendor then corrects the date,
//! the row with the new date is a new record. The record with the old date is cancelled when the vendor retracts it.
//!
//! The symbol comes from the feed's row, so a change of the ticker does not change ids. If the versions of a record
//! have several symbols, the security's earliest symbol is used.
//!
//! If several payments of one day have no vendor's id, they are numbered by amount: the second id ends in `.2`, the
//! third in `.3`. If one file contains all payments of the day, their ids do not depend on other files or on the order
//! of loading.
//!
//! Symbols and source names contain neither `/` nor `@`, so the parts of an id are unambiguous.

use std::fmt::{self, Write as _};
use std::hash::{Hash, Hasher};

use crate::event::{Dividend, Split};
use crate::metrics::merge::Payment;
use crate::observation::Observation;

/// Initial capacity of an id, in bytes. It suffices for most ids.
const USUAL: usize = 80;

pub(crate) fn dividend_id(payment: &Payment<'_>) -> String {
    of_payment(payment, "dividend")
}

/// Adds all parts of a dividend's record id to a hash.
pub(crate) fn hash_dividend_id(payment: &Payment<'_>, state: &mut impl Hasher) {
    let Observation { id, source, record, .. } = payment.observation;
    let Dividend { ex_date, record_date, r#type, currency, .. } = record;
    (&payment.named.record.symbol, source, id, payment.ordinal).hash(state);
    if id.is_none() {
        (ex_date, record_date, r#type, currency).hash(state);
    }
}

/// Id of a stock dividend as a row in the list of splits.
pub(crate) fn stock_dividend_id(payment: &Payment<'_>) -> String {
    of_payment(payment, "stock_dividend")
}

pub(crate) fn split_id(observation: &Observation<Split>) -> String {
    let split = &observation.record;
    id(observation, split.symbol.as_str(), "split", |id| write!(id, "{}", split.ex_date))
}

fn of_payment(payment: &Payment<'_>, kind: &str) -> String {
    let Dividend { ex_date, record_date, r#type, currency, .. } = &payment.observation.record;
    let said = |id: &mut String| {
        match (ex_date, record_date) {
            (Some(ex_date), _) => write!(id, "{ex_date}")?,
            (None, Some(record_date)) => write!(id, "record-{record_date}")?,
            (None, None) => id.push_str("record-"),
        }
        id.extend([".", r#type.as_str(), ".", currency]);
        // Payments of one day are numbered by amount: the second id ends in `.2`.
        if payment.ordinal == 0 { Ok(()) } else { write!(id, ".{}", payment.ordinal + 1) }
    };
    id(payment.observation, payment.named.record.symbol.as_str(), kind, said)
}

/// Id of a record. If the observation has no vendor's id, `write_fields` appends the fields that identify the record.
fn id<T>(
    observation: &Observation<T>,
    symbol: &str,
    kind: &str,
    write_fields: impl FnOnce(&mut String) -> fmt::Result,
) -> String {
    let mut id = String::with_capacity(USUAL);
    // Symbols and source names contain neither `/` nor `@`, so the parts are unambiguous.
    id.extend([symbol, "/", &observation.source, "/", kind]);
    let written = match &observation.id {
        Some(vendor) => {
            id.push('/');
            id.push_str(vendor);
            Ok(())
        }
        None => {
            id.push('@');
            write_fields(&mut id)
        }
    };
    debug_assert!(written.is_ok(), "a string takes whatever is written to it");
    id
}
