//! Common interface of the log's records: kind, symbol and effective date. A new kind also needs entries in
//! `codec::records`, `event_log::body` and, for a security's history, [`crate::history::History`].
//!
//! Row of the log (a record with its provenance and version), and rejected feed row.

use chrono::{DateTime, NaiveDate, Utc};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};

use super::enums::Action;
use crate::event::{
    Decision, Dividend, DividendEvidence, Etf, Fundamentals, FxRate, HoldingSnapshot, Kind, MarketSession,
    Security, Split,
};
use crate::symbol::Symbol;

/// Record of the log. The facts tables store it as an observation, together with its provenance.
pub trait EventRecord: Serialize + DeserializeOwned {
    /// Kind of the record batches that contain records of this type.
    const KIND: Kind;
    /// Symbol of the record; `None` if the record concerns the whole market.
    fn symbol(&self) -> Option<&Symbol>;
    /// Effective date. The record belongs to the security that has the symbol on this date. `None` if the record
    /// applies to every security that ever had the symbol.
    fn date(&self) -> Option<NaiveDate>;
}

impl EventRecord for MarketSession {
    const KIND: Kind = Kind::Session;
    fn symbol(&self) -> Option<&Symbol> {
        None
    }
    fn date(&self) -> Option<NaiveDate> {
        Some(self.date)
    }
}

/// Implements [`EventRecord`] for records with a symbol.
macro_rules! of_symbol {
    ($($record:ident: $kind:ident, |$of:pat_param| $date:expr;)*) => {
        $(impl EventRecord for $record {
            const KIND: Kind = Kind::$kind;
            fn symbol(&self) -> Option<&Symbol> {
                Some(&self.symbol)
            }
            fn date(&self) -> Option<NaiveDate> {
                let $of = self;
                $date
            }
        })*
    };
}

of_symbol! {
    Security: Security, |_| None;
    Dividend: Dividend, |dividend| dividend.ex_date.or(dividend.record_date);
    Split: Split, |split| Some(split.ex_date);
    DividendEvidence: Evidence, |evidence| evidence.ex_date;
    Fundamentals: Fundamentals, |fundamentals| Some(fundamentals.as_of);
    Etf: Etf, |etf| Some(etf.as_of);
    HoldingSnapshot: Holding, |snapshot| Some(snapshot.as_of);
    FxRate: Fx, |rate| Some(rate.date);
    // A decision needs no date: it applies to every security that had the symbol, but its key matches only one row.
    Decision: Decision, |_| None;
}

/// Row of the log: a record with its provenance and version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventRow<T> {
    /// Line (or record number) of the row in its file, from 1.
    #[serde(deserialize_with = "line_number")]
    pub line: u64,
    /// Vendor's record id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Vendor's revision of the record. A higher revision replaces a lower one.
    #[serde(default)]
    pub revision: i64,
    /// Action of the row: `put` adds or corrects the record, `retract` withdraws it.
    pub action: Action,
    /// Observation time of the feed that contained the row, with microsecond precision.
    pub observed_at: DateTime<Utc>,
    /// Vendor's permanent id of the security.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_ref: Option<String>,
    /// Content of the row.
    pub record: T,
}

impl<T> EventRow<T> {
    /// Row with the same provenance and another record.
    pub fn with_record<R>(self, record: R) -> EventRow<R> {
        let Self { line, id, revision, action, observed_at, security_ref, record: _ } = self;
        EventRow { line, id, revision, action, observed_at, security_ref, record }
    }
}

/// Rejected feed row with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reject {
    /// Name of the file that contained the row.
    pub file: String,
    /// Line number of the row in the file, from 1.
    #[serde(deserialize_with = "line_number")]
    pub line: u64,
    /// Stable reason code of the rejection, for example `non_positive_amount`.
    pub reason: String,
    /// Message for the operator that says what to correct in the row.
    pub message: String,
    /// Text of the row, cut at 4 KiB.
    pub row: String,
    /// Header line of the table that contained the row; `None` without a table or header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<String>,
}

/// Deserializes a line number. A value above `i64::MAX` is an error, because Postgres stores line numbers as signed
/// 64-bit integers.
fn line_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let line = u64::deserialize(deserializer)?;
    i64::try_from(line).map(i64::unsigned_abs).map_err(|_| Error::custom("a line beyond 2^63"))
}

/// Converts a line number to the signed 64-bit integer of a table column.
pub(crate) fn line_column(line: u64) -> i64 {
    debug_assert!(i64::try_from(line).is_ok(), "lines are refused above that where they are read");
    line.cast_signed()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::EventRecord;
    use crate::event::{
        Decision, Dividend, Etf, Fundamentals, HoldingSnapshot, MarketSession, Security, Split,
    };

    /// Formats a record as `kind symbol day`. An absent symbol or day is `-`.
    fn describe<T: EventRecord>(record: Value) -> String {
        let record: T = serde_json::from_value(record).unwrap();
        let symbol = record.symbol().map_or("-".to_owned(), ToString::to_string);
        let day = record.date().map_or("-".to_owned(), |day| day.to_string());
        format!("{} {symbol} {day}", T::KIND)
    }

    #[test]
    fn a_record_names_its_symbol_and_the_day_of_its_tenure() {
        let paid = json!({ "symbol": "LIFE", "amount": "0.46", "currency": "USD", "type": "regular",
            "amount_basis": "raw", "record_date": "2023-06-16", "payment_date": "2023-07-03" });
        assert_eq!(describe::<Dividend>(paid.clone()), "dividend LIFE 2023-06-16");
        let mut dated = paid;
        dated["ex_date"] = json!("2023-06-15");
        assert_eq!(describe::<Dividend>(dated), "dividend LIFE 2023-06-15");
        let split = json!({ "symbol": "LIFE", "ex_date": "2012-08-13", "from": "1", "to": "2",
            "declaration_date": "2012-07-10" });
        assert_eq!(describe::<Split>(split), "split LIFE 2012-08-13");
        let figures = json!({ "symbol": "LIFE", "as_of": "2024-03-29", "eps_as_of": "2023-12-31" });
        assert_eq!(describe::<Fundamentals>(figures), "fundamentals LIFE 2024-03-29");
        let fund = json!({ "symbol": "FUND", "as_of": "2024-03-29", "inception_date": "1993-01-22" });
        assert_eq!(describe::<Etf>(fund), "etf FUND 2024-03-29");
        let positions = json!({ "symbol": "FUND", "as_of": "2024-03-29", "holdings": [] });
        assert_eq!(describe::<HoldingSnapshot>(positions), "holding FUND 2024-03-29");
        // A reference record and a decision have no day.
        let company = json!({ "symbol": "LIFE", "name": "Life", "type": "stock", "currency": "USD",
            "status": "active", "ipo_date": "1962-01-02" });
        assert_eq!(describe::<Security>(company), "security LIFE -");
        let decided = json!({ "symbol": "LIFE", "verdict": "release", "kind": "dividend", "source": "a",
            "date": "2023-06-15", "value": "0.46", "reason": "amount_outlier", "note": "declared so" });
        assert_eq!(describe::<Decision>(decided), "decision LIFE -");
        // A session has no symbol.
        assert_eq!(describe::<MarketSession>(json!({ "date": "2024-06-28" })), "session - 2024-06-28");
    }
}

#[cfg(test)]
mod row_tests {
    use super::*;

    #[test]
    fn a_line_is_kept_or_refused_whole() {
        let read = |line: u64| {
            let row = serde_json::json!({ "file": "a.csv", "line": line, "reason": "r", "message": "m", "row": "" });
            serde_json::from_value::<Reject>(row).map(|reject| reject.line).ok()
        };
        let last = i64::MAX.unsigned_abs();
        assert_eq!([1, 7, last, last + 1].map(read), [Some(1), Some(7), Some(last), None]);
        assert_eq!(line_column(last), i64::MAX);
    }
}
