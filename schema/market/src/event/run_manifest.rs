//! Run manifest: log message with the files, row counts and batch digest of one `ingest` run.
//!
//! State of a run, and the log event that changes it.
//!
//! Search for a run by its id, or by the beginning of its id.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use super::enums::Kind;
use crate::symbol::Symbol;
use crate::text_enum;

text_enum! {
    /// State of a run. The manifest with the state `started` is published before the rows, so that an interrupted run
    /// can be found and resumed.
    pub enum RunState { Started = "started", Completed = "completed" }
}

/// Manifest of one run. `ingest verify` compares the record batches in the log with this manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunManifest {
    /// Run id.
    pub run: String,
    /// State of the run.
    pub state: RunState,
    /// Source of the run's rows (`--source`).
    pub source: String,
    /// Name of the file format (`--format`); `map` if the run used a column map (`--map`).
    pub format: String,
    /// File names. A completed run lists only the files that it loaded. Only the first files are listed.
    pub files: Vec<String>,
    /// Number of files that `files` leaves out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_files: u64,
    /// Digest of each file, also of those that `files` leaves out. The first digests are in the order of `files`.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// Observation time of rows that have no observation time in their file.
    pub observed_at: DateTime<Utc>,
    /// Number of record batches of the run, including batches of rejected rows. The manifests of the run are not
    /// counted.
    pub chunks: u64,
    /// Number of loaded rows.
    pub rows: u64,
    /// Number of rejected rows.
    pub rejects: u64,
    /// Number of amounts and prices that were rounded because they had too many decimal places.
    pub rounded: u64,
    /// BLAKE3 digest of the ids of the record batches, in order of publication.
    pub digest: String,
    /// Number of record batches by input file and kind of row. `ingest verify` computes the ids of the expected batches
    /// from these numbers. The numbers are final only if the run is completed.
    #[serde(default)]
    pub frames: Vec<InputBatchCount>,
    /// Number of log messages of the run. If the number is absent, each message contains exactly one record batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Command-line arguments of `ingest` that repeat this load. Paths are absolute; secrets are left out.
    #[serde(default)]
    pub command: Vec<String>,
    /// Symbols of this run that no earlier completed run contains. The list is absent if this run or an earlier run has
    /// more symbols than a manifest may list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_symbols: Option<Vec<Symbol>>,
    /// Newest date of the run's rows, by kind.
    #[serde(default)]
    pub newest: BTreeMap<Kind, NaiveDate>,
    /// Ids of rejected rows of earlier runs. The files of this run contain these rows in corrected form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mends: Vec<String>,
    /// Names of the files that the run refused as a whole. Only the first files are listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// Number of files that `refused` leaves out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_refused: u64,
    /// Set if this manifest is an entry of a pull, which fetches data from a vendor's API. The entry charges API calls
    /// or records progress. `None` for a run that loads rows.
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
            more_files: 0,
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
            refused: Vec::new(),
            more_refused: 0,
            pull: None,
        }
    }
}

/// Entry of a pull in the log: either API calls that it charges to a budget, or the progress of requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pull {
    /// Name of the connector (the definition of a vendor's API). Each connector has its own call budget and its own
    /// bookmarks.
    pub connector: String,
    /// Number of API calls charged to the connector's call budget, before they are made. 0 in an entry that records
    /// [`Self::bookmarks`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub calls: u64,
    /// Time until which the charged API calls may be made. Unused calls are not refunded.
    pub until: DateTime<Utc>,
    /// New progress of requests whose rows are in the log, by request name. The name includes the symbol or day of the
    /// request, if any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bookmarks: BTreeMap<String, Bookmark>,
}

/// Progress of one request of a pull.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bookmark {
    /// Last day that the request asked for, in New York time.
    pub through: NaiveDate,
    /// Time at which the response arrived.
    pub fetched: DateTime<Utc>,
    /// `ETag` header of the response (RFC 9110). The next request sends the header back, so that the vendor returns
    /// data only if the data changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// `Last-Modified` header of the response. The next request sends this header back if the response had no `ETag`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// Hash of the response body. If the next response has the same hash, its rows are not loaded again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Number of record batches of one kind from one input. Usually, an input is one file. But the holdings of all files of
/// the run are counted together, as one input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputBatchCount {
    /// Digest of the input.
    pub input: String,
    /// Kind of the rows.
    pub kind: Kind,
    /// Number of record batches.
    pub frames: u64,
}

text_enum! {
    /// State of a run's rows. Nothing is deleted: another event makes the rows visible again.
    pub enum RunVisibility {
        /// The rows are served. A run without an event is visible.
        Visible = "visible",
        /// The rows wait for a release and are not served.
        Held = "held",
        /// The run was undone, and its rows are not served.
        Excluded = "excluded",
    }
}

/// Event of kind `run` that changes the state of a run. At a sequence of the log, a run has the state of its last event
/// up to this sequence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunChange {
    /// Id of the run.
    pub run: String,
    /// State from this event on.
    pub new_state: RunVisibility,
    /// Why the operator changed the state; empty if not given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Instant of the command.
    pub at: DateTime<Utc>,
    /// Person or program that gave the command.
    pub operator: String,
}

/// Row of the kind `run`: a manifest, or a change of state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RunEvent {
    /// Change of a run's state.
    Change(RunChange),
    /// Files and counts of a run.
    Manifest(Box<RunManifest>),
}

/// Minimum length of the beginning of an id, in characters. A shorter text is probably a mistake.
const MIN_CHARS: usize = 4;
/// Maximum number of candidates in an error message.
const MAX_LISTED: usize = 5;

/// Errors of finding a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunIdError {
    /// No run has this id, and no id begins with this text.
    #[error("cannot find run {0} in the log; see: ingest runs")]
    Unknown(String),
    /// The ids of several runs begin with the text.
    #[error("run {text} is ambiguous: {}; write more characters of the id", candidates.join(", "))]
    Ambiguous {
        /// Beginning of an id.
        text: String,
        /// Ids that begin with the text, with an ellipsis if there are more.
        candidates: Vec<String>,
    },
}

/// Parses the name of a source. The error says what a name is.
pub fn parse_source_name(text: &str) -> Result<String, String> {
    let valid = (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    valid.then(|| text.to_owned()).ok_or_else(|| "1 to 64 letters, digits, '-', '_' and '.'".to_owned())
}

/// Finds the id that is equal to a text, or else the only id that begins with it. The text has at least 4 characters.
///
/// # Errors
/// No id or several ids fit.
pub fn find_run_id<'a>(text: &str, ids: impl IntoIterator<Item = &'a str>) -> Result<&'a str, RunIdError> {
    let mut found: Vec<&str> = ids.into_iter().filter(|id| id.starts_with(text)).collect();
    found.sort_unstable();
    found.dedup();
    match found.as_slice() {
        [id, ..] if *id == text => Ok(id),
        [id] if text.len() >= MIN_CHARS => Ok(id),
        [_, _, ..] if text.len() >= MIN_CHARS => {
            let mut candidates: Vec<String> =
                found.iter().take(MAX_LISTED).map(|id| (*id).to_owned()).collect();
            candidates.extend((found.len() > MAX_LISTED).then(|| "…".to_owned()));
            Err(RunIdError::Ambiguous { text: text.to_owned(), candidates })
        }
        _ => Err(RunIdError::Unknown(text.to_owned())),
    }
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

#[cfg(test)]
mod run_change_tests {
    use super::*;

    #[test]
    fn a_change_and_a_manifest_are_told_apart() {
        let [run, source, format] = ["r", "eod", "auto"].map(str::to_owned);
        let manifest = RunManifest::started(run.clone(), source, format, DateTime::UNIX_EPOCH);
        let change = RunChange {
            run,
            new_state: RunVisibility::Excluded,
            reason: String::new(),
            at: DateTime::UNIX_EPOCH,
            operator: "ann".to_owned(),
        };
        for event in [RunEvent::Manifest(Box::new(manifest)), RunEvent::Change(change)] {
            let text = serde_json::to_string(&event).unwrap();
            assert_eq!(serde_json::from_str::<RunEvent>(&text).unwrap(), event, "{text}");
        }
    }

    #[test]
    fn the_beginning_of_one_id_suffices_and_of_several_does_not() {
        let ids = ["abcd1", "abcd2", "abcdef", "abcd", "0123", "01234"];
        assert_eq!(find_run_id("abcde", ids), Ok("abcdef"));
        assert_eq!(find_run_id("0123", ids), Ok("0123"));
        let ambiguous = find_run_id("abcd", ids[..3].iter().copied()).unwrap_err().to_string();
        assert!(ambiguous.contains("abcd1, abcd2, abcdef; write more"), "{ambiguous}");
        for text in ["", "012", "abcz"] {
            assert_eq!(find_run_id(text, ids), Err(RunIdError::Unknown(text.to_owned())));
        }
    }
}
