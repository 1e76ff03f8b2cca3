//! Observations: records as feeds reported them. If a record was reported several times, the observation with the
//! greatest version rank is used (R29).

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use crate::event::Action;

/// Record as one feed reported it, with its origin (feed, batch and line) and its version.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Observation<T> {
    /// Name of the feed, as set with `--source` at ingest.
    pub source: CompactString,
    /// Vendor's record id.
    pub id: Option<String>,
    /// Vendor's permanent id of the security.
    pub security_ref: Option<String>,
    /// Vendor's revision of the record. A higher revision replaces a lower one.
    pub revision: i64,
    /// Action of the row: `put` adds or replaces the record, and `retract` withdraws it.
    pub action: Action,
    /// Time at which the feed observed the record.
    pub observed_at: DateTime<Utc>,
    /// Line number of the row in the feed's file.
    pub line: u64,
    /// Id of the record batch that contains the row in the log. In JSON, it is written as 32 hex digits.
    #[serde(with = "frame_digits")]
    pub frame: [u8; 16],
    /// Content of the row.
    pub record: T,
}

impl<T> Observation<T> {
    /// Rank of the observation among the versions of its record (R29). For the argument `preference`, see the field
    /// [`VersionRank::preference`].
    pub fn version(&self, preference: u32) -> VersionRank<'_> {
        VersionRank {
            revision: self.revision,
            preference,
            observed_at: self.observed_at.timestamp_micros(),
            retracted: self.action == Action::Retract,
            line: self.line,
            frame: &self.frame,
        }
    }
}

/// For each key, the observation with the greatest version rank. The ranks are computed with `preference` 0.
pub(crate) fn newest_by_key<'a, T, K: Ord>(
    keyed: impl IntoIterator<Item = (K, &'a Observation<T>)>,
) -> BTreeMap<K, &'a Observation<T>> {
    let mut newest: BTreeMap<K, &Observation<T>> = BTreeMap::new();
    for (key, observation) in keyed {
        let known = newest.entry(key).or_insert(observation);
        if known.version(0) < observation.version(0) {
            *known = observation;
        }
    }
    newest
}

/// Rank of an observation among all observations with the same key, for example the same vendor id. The greatest rank
/// wins. Fields are compared in declaration order. No two rows have equal ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct VersionRank<'a> {
    /// Vendor's revision of the record.
    pub revision: i64,
    /// Preference among dividends or splits with the same vendor id and revision (R29); otherwise 0. A higher number is
    /// preferred.
    ///
    /// A retraction has the highest number. A `put` row has its rank by dates.
    pub preference: u32,
    /// Observation time, microseconds since 1970, UTC.
    pub observed_at: i64,
    /// True for a retraction. A retraction is preferred to a row with the action `put` if all fields above are equal.
    pub retracted: bool,
    /// Line number of the row in the feed's file. If all fields above are equal, the greater line number wins.
    pub line: u64,
    /// Id of the record batch. If all other fields are equal, the greater id wins.
    pub frame: &'a [u8; 16],
}

/// Serde format of the id of a record batch: 32 hex digits.
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
