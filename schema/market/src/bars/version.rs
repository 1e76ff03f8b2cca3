//! Version of a bar: its provenance, and its rank among the observations of the same session.
//!
//! Error of merging, appending or rescaling bars.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::event::Action;
use crate::observation::VersionRank;

/// Version of a bar: vendor's revision, observation time and provenance.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BarVersion {
    /// Vendor's revision number. A higher revision wins.
    pub revision: i64,
    /// Observation time, microseconds since 1970, UTC.
    pub observed_at: i64,
    /// True if the vendor retracted the bar.
    pub retracted: bool,
    /// Day number of the share basis. The prices are adjusted for all splits up to this day. 0 means the newest day of
    /// the source's data. `None` means raw prices.
    pub basis_day: Option<i32>,
    /// Line number of the record batch's first row in the feed's file. The greater line wins between versions with
    /// equal `revision`, `observed_at` and `retracted`.
    pub line: u64,
    /// Id of the record batch of the bar.
    pub frame: [u8; 16],
}

impl BarVersion {
    /// Version of bars from a table that stores no versions.
    pub const UNKNOWN: Self =
        Self { revision: 0, observed_at: 0, retracted: false, basis_day: None, line: 0, frame: [0; 16] };

    /// Builds a version from the fields of a feed row. The line and the id of the record batch are 0.
    pub fn new(revision: i64, action: Action, observed_at: DateTime<Utc>, basis_day: Option<i32>) -> Self {
        let (observed_at, retracted) = (observed_at.timestamp_micros(), action == Action::Retract);
        Self { revision, observed_at, retracted, basis_day, ..Self::UNKNOWN }
    }

    /// Rank of the version in a merge (R29). The greatest rank wins.
    pub fn rank(&self) -> VersionRank<'_> {
        VersionRank {
            revision: self.revision,
            preference: 0,
            observed_at: self.observed_at,
            retracted: self.retracted,
            line: self.line,
            frame: &self.frame,
        }
    }

    /// Observation time of the bar.
    pub fn observation_time(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.observed_at).unwrap_or_default()
    }
}

/// Builder of a list of distinct versions. It caches the last index, because most bars repeat the previous version.
#[derive(Default)]
pub struct VersionDictionary {
    last: u16,
}

impl VersionDictionary {
    /// Returns the index of `version` in the list `versions`. If the list does not have the version, appends it.
    pub fn index(&mut self, versions: &mut Vec<BarVersion>, version: &BarVersion) -> Result<u16, BarsError> {
        if versions.get(usize::from(self.last)) != Some(version) {
            let found = versions.iter().position(|known| known == version);
            let index = found.unwrap_or_else(|| {
                versions.push(version.clone());
                versions.len() - 1
            });
            self.last = u16::try_from(index).map_err(|_| BarsError::TooManyVersions)?;
        }
        Ok(self.last)
    }
}

/// Error of merging, appending or rescaling bars.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum BarsError {
    #[error("bars have more than 65,536 versions")]
    TooManyVersions,
    #[error("a price does not fit the scale of its neighbours")]
    ScaleOverflow,
    #[error("a bar repeats a bar that does not exist")]
    NoOriginal,
}
