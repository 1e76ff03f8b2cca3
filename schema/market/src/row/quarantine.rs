//! Table `quarantine`: feed rows that are excluded from all figures, with the reason for each (R28, R30).

use chrono::NaiveDate;

use super::flag::QuarantineReason;
use crate::dated_text::{DatedText, LimitToHistory};
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
        /// Session of a price, or ex-date of a dividend or split. For a dividend without an ex-date, its record date.
        "date" date: Option<NaiveDate>,
        /// Vendor's id of the row; null if the vendor gives none.
        "id" id: Option<String>,
        /// Stable code of the reason for the quarantine.
        #[schema(value_type = QuarantineReason)]
        "reason" reason: String,
        /// Description of the row's fault, as a sentence.
        "message" message: String,
        /// Name of the feed that reported the row.
        "source" source: String,
        /// Line in the feed's file; 0 if unknown.
        "line" line: i64,
    }
}

impl LimitToHistory for Vec<Quarantined> {
    /// Removes the rows from before `first`, and earlier days in the messages.
    fn limit_to_days_from(mut self, first: NaiveDate) -> Self {
        self.retain(|row| row.date.is_none_or(|date| date >= first));
        for row in &mut self {
            row.message = DatedText::parse(&row.message).limit_to_days_from(first).to_string();
        }
        self
    }
}
