//! One observation of a record: what a feed said, where and when.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::event::Action;
use crate::version::Version;

/// One observation of a record, with its provenance and version.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Observation<T> {
    /// Feed it came from (`--source`).
    pub source: String,
    /// Vendor's own record id.
    pub id: Option<String>,
    /// Vendor's permanent id of the security.
    pub security_ref: Option<String>,
    /// The vendor's revision: the greater one replaces the smaller.
    pub revision: i64,
    /// Whether the record is said or taken back.
    pub action: Action,
    /// When the feed was taken.
    pub observed_at: DateTime<Utc>,
    /// Line in the feed's file.
    pub line: u64,
    /// Id of the frame in the log, 32 hex digits.
    pub frame: String,
    /// What was said.
    pub record: T,
}

impl<T> Observation<T> {
    /// What it is worth against another about the same thing (R29), of this preference.
    pub fn version(&self, preference: u32) -> Version<'_> {
        Version {
            revision: self.revision,
            preference,
            observed_at: self.observed_at.timestamp_micros(),
            retracted: self.action == Action::Retract,
            line: self.line,
            frame: self.frame.as_bytes(),
        }
    }
}
