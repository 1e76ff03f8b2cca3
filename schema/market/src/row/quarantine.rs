//! `quarantine`: rows held back from every figure because of their neighbours (R28, R30).

use chrono::NaiveDate;

use super::flag::HoldReason;
use crate::table_row;

table_row! {
    /// A held row: it comes back by itself when its neighbours change.
    #[derive(serde::Deserialize)]
    pub struct Quarantined {
        /// Canonical ticker.
        "symbol" symbol: String,
        /// price, dividend or split.
        "kind" kind: String,
        /// Ex-date or session of the row.
        "date" date: Option<NaiveDate>,
        /// Vendor's id of the row.
        "id" id: Option<String>,
        /// Stable reason code.
        #[schema(value_type = HoldReason)]
        "reason" reason: String,
        /// A sentence that says what was seen.
        "message" message: String,
        /// Feed the row came from.
        "source" source: String,
        /// Line in that feed's file.
        "line" line: i64,
    }
}
