//! Ids of records, unique over the whole service and the same however often the tables are built.
//!
//! `symbol/source/kind/vendor's id`, or `symbol/source/kind@date.type.currency` where the vendor gives none: a corrected
//! date is then another record, and the one at the old date is cancelled. The symbol is the one that the record was filed
//! under, of several known ones the one that the security held first: a record filed under one symbol keeps its id whatever
//! tickers become known. A second payment of a day without vendor's id has `.2`, a third `.3`, by amount: once a file has
//! named all of them, no other file and no other order changes their ids. Symbols and source names hold no `/` and no `@`.

use std::fmt::{self, Write as _};
use std::hash::{Hash, Hasher};

use crate::event::{Dividend, Split};
use crate::measure::merge::Payment;
use crate::observation::Observation;

/// Bytes of an id, seldom more.
const USUAL: usize = 80;

/// The id of a dividend record.
pub(super) fn dividend_id(payment: &Payment<'_>) -> String {
    of_payment(payment, "dividend")
}

/// Feeds all that the id of a dividend record is made of.
pub(super) fn mark_dividend_id(payment: &Payment<'_>, state: &mut impl Hasher) {
    let Observation { id, source, record, .. } = payment.observation;
    let Dividend { ex_date, record_date, r#type, currency, .. } = record;
    (&payment.named.record.symbol, source, id, payment.part).hash(state);
    if id.is_none() {
        (ex_date, record_date, r#type, currency).hash(state);
    }
}

/// The id of a stock dividend among the splits.
pub(super) fn stock_dividend_id(payment: &Payment<'_>) -> String {
    of_payment(payment, "stock_dividend")
}

/// The id of a split record.
pub(super) fn split_id(observation: &Observation<Split>) -> String {
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
        if payment.part == 0 { Ok(()) } else { write!(id, ".{}", payment.part + 1) }
    };
    id(payment.observation, payment.named.record.symbol.as_str(), kind, said)
}

/// The id of a record; where the vendor gives none, `said` writes what the record says.
fn id<T>(
    observation: &Observation<T>,
    symbol: &str,
    kind: &str,
    said: impl FnOnce(&mut String) -> fmt::Result,
) -> String {
    let mut id = String::with_capacity(USUAL);
    id.extend([symbol, "/", &observation.source, "/", kind]);
    let written = match &observation.id {
        Some(vendor) => {
            id.push('/');
            id.push_str(vendor);
            Ok(())
        }
        None => {
            id.push('@');
            said(&mut id)
        }
    };
    debug_assert!(written.is_ok(), "a string takes whatever is written to it");
    id
}
