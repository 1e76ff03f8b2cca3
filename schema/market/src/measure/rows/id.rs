//! Ids of records, unique over the whole service and the same however often the tables are built.
//!
//! `security/source/kind/vendor's id`, or `security/source/kind@date.type.currency` where the vendor gives none: a corrected
//! date is then another record, and the one at the old date is cancelled. Symbols and source names hold neither sign.

use crate::event::{Dividend, Split};
use crate::history::{History, Observation};

/// The id of a dividend record.
pub(super) fn dividend_id(history: &History, observation: &Observation<Dividend>) -> String {
    of_dividend(history, observation, "dividend")
}

/// The id of a stock dividend among the splits.
pub(super) fn stock_dividend_id(history: &History, observation: &Observation<Dividend>) -> String {
    of_dividend(history, observation, "stock_dividend")
}

/// The id of a split record.
pub(super) fn split_id(history: &History, observation: &Observation<Split>) -> String {
    id(history, observation, "split", || observation.record.ex_date.to_string())
}

fn of_dividend(history: &History, observation: &Observation<Dividend>, kind: &str) -> String {
    id(history, observation, kind, || {
        let dividend = &observation.record;
        let date = match (dividend.ex_date, dividend.record_date) {
            (Some(ex_date), _) => ex_date.to_string(),
            (None, record_date) => {
                format!("record-{}", record_date.map(|date| date.to_string()).unwrap_or_default())
            }
        };
        format!("{date}.{}.{}", dividend.r#type, dividend.currency)
    })
}

fn id<T>(
    history: &History,
    observation: &Observation<T>,
    kind: &str,
    natural: impl Fn() -> String,
) -> String {
    let (security, source) = (&history.key, &observation.source);
    match &observation.id {
        Some(vendor) => format!("{security}/{source}/{kind}/{vendor}"),
        None => format!("{security}/{source}/{kind}@{}", natural()),
    }
}
