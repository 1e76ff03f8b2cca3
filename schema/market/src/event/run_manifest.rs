//! Run manifest: the inputs, counts and digest of one load.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use super::enums::Kind;
use crate::symbol::Symbol;
use crate::text_enum;

text_enum! {
    /// State of a run. The start is published first, so that an interrupted run can be found and resumed.
    pub enum RunState { Started = "started", Completed = "completed" }
}

/// Manifest of one load: the expected content of the log, for end-to-end verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunManifest {
    /// Run id.
    pub run: String,
    /// State of the run.
    pub state: RunState,
    /// Feed (`--source`).
    pub source: String,
    /// Formats of the files.
    pub format: String,
    /// File names.
    pub files: Vec<String>,
    /// Digests of the inputs, in the order of `files`; a completed run lists only the inputs it loaded.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// Time of the feed.
    pub observed_at: DateTime<Utc>,
    /// Data frames published, rejects included, the two manifests excluded.
    pub chunks: u64,
    /// Rows loaded.
    pub rows: u64,
    /// Rows rejected.
    pub rejects: u64,
    /// Amounts and prices rounded on entry because of excess fraction digits.
    pub rounded: u64,
    /// BLAKE3 digest of the frame ids in order.
    pub digest: String,
    /// Frames per input, which determine the frame ids; complete only for a completed run.
    #[serde(default)]
    pub frames: Vec<InputFrames>,
    /// Number of log messages of the run. Small frames share a message. Absent if each frame had a message of
    /// its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Arguments of `ingest` that repeat the load, with absolute paths and without secrets.
    #[serde(default)]
    pub command: Vec<String>,
    /// Symbols in the run's rows that no earlier completed run had. Absent if there are too many of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_symbols: Option<Vec<Symbol>>,
    /// Newest date of its rows, by kind.
    #[serde(default)]
    pub newest: BTreeMap<Kind, NaiveDate>,
    /// Ids of earlier rejects that its inputs repair.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mends: Vec<String>,
    /// State of a pull, for manifests of pulls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull: Option<Pull>,
}

impl RunManifest {
    /// Manifest of a new run, with all counts at 0.
    pub fn started(run: String, source: String, format: String, observed_at: DateTime<Utc>) -> Self {
        Self {
            run,
            state: RunState::Started,
            source,
            format,
            files: Vec::new(),
            inputs: Vec::new(),
            observed_at,
            chunks: 0,
            rows: 0,
            rejects: 0,
            rounded: 0,
            digest: String::new(),
            frames: Vec::new(),
            messages: None,
            command: Vec::new(),
            new_symbols: None,
            newest: BTreeMap::new(),
            mends: Vec::new(),
            pull: None,
        }
    }
}

/// State of a pull in addition to its rows: the call budget and the progress of requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pull {
    /// Connector that owns the budget and the bookmarks.
    pub connector: String,
    /// Calls charged to the budget, in advance.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub calls: u64,
    /// Time until which the charged calls may be made.
    pub until: DateTime<Utc>,
    /// Progress of requests with rows in the log, by request name and its symbol or day.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bookmarks: BTreeMap<String, Bookmark>,
}

/// Progress of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bookmark {
    /// Last requested day, in New York's calendar.
    pub through: NaiveDate,
    /// Time of the response.
    pub fetched: DateTime<Utc>,
    /// `ETag` of the response (RFC 9110), which detects a replaced file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// `Last-Modified` header of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// Hash of the response, for vendors without validators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Number of frames of one kind from one input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFrames {
    /// Digest of the input.
    pub input: String,
    /// Kind of the rows.
    pub kind: Kind,
    /// Number of frames.
    pub frames: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pull_tells_the_calls_it_made_and_is_silent_where_it_made_none() {
        for (calls, said) in [(0, None), (1, Some("1")), (250, Some("250"))] {
            let pull = Pull {
                connector: "a".to_owned(),
                calls,
                until: DateTime::UNIX_EPOCH,
                bookmarks: BTreeMap::new(),
            };
            let text = serde_json::to_value(&pull).unwrap();
            assert_eq!(text.get("calls").map(ToString::to_string).as_deref(), said);
            assert_eq!(serde_json::from_value::<Pull>(text).unwrap(), pull);
        }
    }
}
