//! A run's manifest: what it loaded and out of what.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use super::words::Kind;
use crate::symbol::Symbol;
use crate::text_enum;

text_enum! {
    /// Where a run stands; the start is published first, so that an interrupted run can be found and resumed.
    pub enum RunState { Started = "started", Completed = "completed" }
}

/// The manifest of one load: what it was to publish, for verification end to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The run's id.
    pub run: String,
    /// How far it came.
    pub state: RunState,
    /// Feed it loaded (`--source`).
    pub source: String,
    /// Formats of its files.
    pub format: String,
    /// Names of its files.
    pub files: Vec<String>,
    /// Digests of the inputs, in the order of `files`; a completed run names only those it loaded.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// When the feed was taken.
    pub observed_at: DateTime<Utc>,
    /// Data frames published, rejects included, the manifest's own two messages not.
    pub chunks: u64,
    /// Rows it loaded.
    pub rows: u64,
    /// Rows it refused.
    pub rejects: u64,
    /// Amounts and prices whose excess fraction digits were rounded on entry.
    pub rounded: u64,
    /// BLAKE3 over the frame ids in order.
    pub digest: String,
    /// The frames cut from each input, from which their ids follow; only a completed run knows them all.
    #[serde(default)]
    pub frames: Vec<InputFrames>,
    /// Messages of the log they are in, small frames sharing one; absent where each frame had a message to itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Arguments of `ingest` that load the same again, with absolute paths; nothing secret.
    #[serde(default)]
    pub command: Vec<String>,
    /// The symbols of its rows that no run completed before had; absent when there are too many to name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_symbols: Option<Vec<Symbol>>,
    /// The newest date of its rows, by kind.
    #[serde(default)]
    pub newest: BTreeMap<Kind, NaiveDate>,
    /// Ids of rows refused before that its inputs hold mended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mends: Vec<String>,
    /// What a pull noted instead of loading anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull: Option<Pull>,
}

impl Run {
    /// A run that begins: nothing is counted yet.
    pub fn begun(run: String, source: String, format: String, observed_at: DateTime<Utc>) -> Self {
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

/// What a pull notes beside the rows it loads: the calls it may make, and how far its requests came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pull {
    /// Name of the connector that the budget and the bookmarks are of.
    pub connector: String,
    /// Calls charged to the budget, all of them before they are made.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub calls: u64,
    /// The moment after which none of these calls is made any more.
    pub until: DateTime<Utc>,
    /// How far requests came whose rows are in the log, by the request's name and its symbol or day.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bookmarks: BTreeMap<String, Bookmark>,
}

/// How far a request came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bookmark {
    /// The day up to which it asked, by New York's calendar.
    pub through: NaiveDate,
    /// When the answer was fetched.
    pub fetched: DateTime<Utc>,
    /// The answer's validators (RFC 9110), by which a replaced file is noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// Its `Last-Modified` header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// Hash of the answer, by which it is known where the vendor names no validator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// How many frames of one kind were cut from one input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFrames {
    /// Digest of the input.
    pub input: String,
    /// Kind of the rows.
    pub kind: Kind,
    /// Frames of that kind.
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
