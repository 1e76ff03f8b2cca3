//! Row of the log (a record with its provenance and version), and rejected feed row.

use chrono::{DateTime, Utc};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::enums::Action;

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
