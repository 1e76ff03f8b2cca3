//! Ids of records, unique over the whole service and the same however often the tables are built.
//!
//! `symbol/source/kind/vendor's id`, or `symbol/source/kind@date.type.currency` where the vendor gives none: a corrected
//! date is then another record, and the one at the old date is cancelled. The symbol is the one that the record was filed
//! under, of several known ones the one that the security held first: a record filed under one symbol keeps its id whatever
//! tickers become known. A second payment of a day without vendor's id has `.2`, a third `.3`, by amount: once a file has
//! named all of them, no other file and no other order changes their ids. Symbols and source names hold no `/` and no `@`.

use crate::event::{Dividend, Split};
use crate::measure::merge::Payment;
use crate::observation::Observation;

/// The id of a dividend record.
pub(super) fn dividend_id(payment: &Payment<'_>) -> String {
    of_payment(payment, "dividend")
}

/// The id of a stock dividend among the splits.
pub(super) fn stock_dividend_id(payment: &Payment<'_>) -> String {
    of_payment(payment, "stock_dividend")
}

/// The id of a split record.
pub(super) fn split_id(observation: &Observation<Split>) -> String {
    let split = &observation.record;
    id(observation, split.symbol.as_str(), "split", || split.ex_date.to_string())
}

fn of_payment(payment: &Payment<'_>, kind: &str) -> String {
    let symbol = payment.named.record.symbol.as_str();
    id(payment.observation, symbol, kind, || natural(&payment.observation.record, payment.part))
}

fn natural(dividend: &Dividend, part: usize) -> String {
    let date = match (dividend.ex_date, dividend.record_date) {
        (Some(ex_date), _) => ex_date.to_string(),
        (None, record_date) => {
            format!("record-{}", record_date.map(|date| date.to_string()).unwrap_or_default())
        }
    };
    let number = if part == 0 { String::new() } else { format!(".{}", part + 1) };
    format!("{date}.{}.{}{number}", dividend.r#type, dividend.currency)
}

fn id<T>(observation: &Observation<T>, symbol: &str, kind: &str, natural: impl Fn() -> String) -> String {
    let source = &observation.source;
    match &observation.id {
        Some(vendor) => format!("{symbol}/{source}/{kind}/{vendor}"),
        None => format!("{symbol}/{source}/{kind}@{}", natural()),
    }
}
