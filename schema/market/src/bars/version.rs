//! What a bar is worth against another observation of the same session, and where it came from.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::error::BarsError;
use crate::event::Action;
use crate::version::Version;

/// What a bar's values are worth against another observation of the same session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BarVersion {
    /// The vendor's revision.
    pub revision: i64,
    /// Microseconds since 1970, UTC.
    pub observed_at: i64,
    /// Whether the bar was withdrawn.
    pub retracted: bool,
    /// For split-adjusted prices: the day whose share basis they are on (0: the newest day of the data).
    pub basis_day: Option<i32>,
    /// First line of the frame, so that later rows of one file win.
    pub line: u64,
    /// Id of the frame the bar came in.
    pub frame: [u8; 16],
}

impl BarVersion {
    /// The version of bars whose provenance was left behind (read tables).
    pub const UNKNOWN: Self =
        Self { revision: 0, observed_at: 0, retracted: false, basis_day: None, line: 0, frame: [0; 16] };

    /// A version from the parts of a feed row.
    pub fn new(revision: i64, action: Action, observed_at: DateTime<Utc>, basis_day: Option<i32>) -> Self {
        let retracted = action == Action::Retract;
        Self {
            revision,
            observed_at: observed_at.timestamp_micros(),
            retracted,
            basis_day,
            line: 0,
            frame: [0; 16],
        }
    }

    /// The order of R29.
    pub fn rank(&self) -> Version<'_> {
        Version {
            revision: self.revision,
            preference: 0,
            observed_at: self.observed_at,
            retracted: self.retracted,
            line: self.line,
            frame: &self.frame,
        }
    }

    /// When the bar was observed.
    pub fn observed(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.observed_at).unwrap_or_default()
    }
}

/// Finds a version's index, adding it when it is new.
#[derive(Default)]
pub struct Dictionary {
    last: u16,
}

impl Dictionary {
    /// The index of `version` in `versions`.
    pub fn index(&mut self, versions: &mut Vec<BarVersion>, version: &BarVersion) -> Result<u16, BarsError> {
        if versions.get(usize::from(self.last)) != Some(version) {
            let found = versions.iter().position(|known| known == version);
            let index = found.unwrap_or_else(|| {
                versions.push(version.clone());
                versions.len() - 1
            });
            self.last = u16::try_from(index).map_err(|_| BarsError::Damaged("more than 65,536 versions"))?;
        }
        Ok(self.last)
    }
}
