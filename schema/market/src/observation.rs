//! One observation of a record: what a feed said, where and when.

use chrono::{DateTime, Utc};
use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use crate::event::Action;
use crate::version::Version;

/// One observation of a record, with its provenance and version.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Observation<T> {
    /// Feed it came from (`--source`).
    pub source: CompactString,
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
    /// Id of the frame in the log; 32 hex digits in JSON.
    #[serde(with = "frame_digits")]
    pub frame: [u8; 16],
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
            frame: &self.frame,
        }
    }
}

/// A frame's id as 32 hex digits.
mod frame_digits {
    use serde::de::{Deserialize, Deserializer, Error, Unexpected};
    use serde::ser::Serializer;

    pub(super) fn serialize<S: Serializer>(frame: &[u8; 16], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:032x}", u128::from_be_bytes(*frame)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 16], D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = Some(&text).filter(|text| text.len() == 32 && !text.starts_with('+'));
        let id = digits.and_then(|digits| u128::from_str_radix(digits, 16).ok());
        let id = id.ok_or_else(|| Error::invalid_value(Unexpected::Str(&text), &"32 hex digits"))?;
        Ok(id.to_be_bytes())
    }
}
