//! A row around its record, and a row that was refused.

use chrono::{DateTime, Utc};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::words::Action;

/// One row of the log: provenance and version around a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row<T> {
    /// Line (or record number) in the file it came from, from 1.
    #[serde(deserialize_with = "line_number")]
    pub line: u64,
    /// The vendor's own record id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The vendor's revision: the greater one replaces the smaller.
    #[serde(default)]
    pub revision: i64,
    /// Whether the record is said or taken back.
    pub action: Action,
    /// When the feed was taken, to the microsecond.
    pub observed_at: DateTime<Utc>,
    /// The vendor's permanent id of the security.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_ref: Option<String>,
    /// What the row says.
    pub record: T,
}

/// A feed row that could not be used, kept as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reject {
    /// File the row stands in.
    pub file: String,
    /// Line in that file, from 1.
    #[serde(deserialize_with = "line_number")]
    pub line: u64,
    /// Stable code, for example `non_positive_amount`.
    pub reason: String,
    /// A sentence a person can act on.
    pub message: String,
    /// The row itself, cut at 4 KiB.
    pub row: String,
    /// The header of the table it stood in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<String>,
}

/// Reads the number of a line. One that no column can hold is refused, so that [`line_column`] loses nothing.
fn line_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let line = u64::deserialize(deserializer)?;
    i64::try_from(line).map(i64::unsigned_abs).map_err(|_| Error::custom("a line beyond 2^63"))
}

/// The number of a line as a column holds it.
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
