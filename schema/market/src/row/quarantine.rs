//! `quarantine`: rows excluded from all figures, with their reasons (R28, R30).

use chrono::NaiveDate;

use super::flag::QuarantineReason;
use crate::table_row;

table_row! {
    /// A quarantined row: no figure uses it, because it is invalid or contradicts other data. It is used again if a
    /// person reviews and releases it, or if its neighbouring rows no longer contradict it.
    #[derive(serde::Deserialize)]
    pub struct Quarantined {
        /// Canonical ticker.
        "symbol" symbol: String,
        /// Kind of the row: price, dividend or split.
        "kind" kind: String,
        /// Ex-date or session of the row.
        "date" date: Option<NaiveDate>,
        /// Vendor's id of the row.
        "id" id: Option<String>,
        /// Stable code of the reason for the quarantine.
        #[schema(value_type = QuarantineReason)]
        "reason" reason: String,
        /// Fault of the row, as a sentence.
        "message" message: String,
        /// Feed of the row.
        "source" source: String,
        /// Line in the feed's file; 0 if unknown.
        "line" line: i64,
    }
}
