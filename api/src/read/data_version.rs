//! Data version of a response, and the state of the tables of `control` that responses show: licences, and quality by
//! month.

use std::fmt;

use chrono::NaiveDate;
use store::ids::{GenerationId, JournalPosition};
use tokio_postgres::Row;

use crate::parameters::MinVersion;

/// Data version of a response. Data version, request, tier and current day together determine the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct DataVersion {
    pub(crate) generation: GenerationId,
    pub(crate) sequence: i64,
    /// As-of date: the newest session in the data.
    pub(crate) as_of: Option<NaiveDate>,
    /// Position in the journal. Every change of the served data increases it, for example newly derived rows or the
    /// promotion of another generation.
    pub(crate) position: JournalPosition,
    /// True if an earlier data version has the same generation and sequence, but other data. The text of the later
    /// version ends with its journal position, as in `g3.184467.92`.
    pub(crate) is_repeated: bool,
}

impl DataVersion {
    /// Reads a data version from a row with the columns `version_generation`, `version_sequence`, `version_as_of`,
    /// `version_position` and `version_is_repeated`.
    pub(crate) fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            generation: row.try_get("version_generation")?,
            sequence: row.try_get("version_sequence")?,
            as_of: row.try_get("version_as_of")?,
            position: row.try_get("version_position")?,
            is_repeated: row.try_get("version_is_repeated")?,
        })
    }

    /// Text of the version for entity tags and cursors. The text always contains the journal position, even if
    /// `is_repeated` is false.
    pub(crate) fn to_exact_text(self) -> String {
        format!("g{}.{}.{}", self.generation, self.sequence, self.position)
    }

    /// True if this version is `min` or newer. False if `min` has a sequence of another generation, because such
    /// sequences are not comparable.
    pub(crate) fn reaches(&self, min: &MinVersion) -> bool {
        let reaches = |(generation, sequence)| generation == self.generation.0 && sequence <= self.sequence;
        min.position <= self.position.0 && min.sequence.is_none_or(reaches)
    }

    /// True if this version is older than `min`. A sequence of another generation in `min` is ignored, because such
    /// sequences are not comparable.
    pub(crate) fn is_older_than(&self, min: &MinVersion) -> bool {
        let exceeds = |(generation, sequence)| generation == self.generation.0 && sequence > self.sequence;
        min.position > self.position.0 || min.sequence.is_some_and(exceeds)
    }
}

impl fmt::Display for DataVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_repeated {
            return f.write_str(&self.to_exact_text());
        }
        write!(f, "g{}.{}", self.generation, self.sequence)
    }
}

/// State of the tables of `control` that responses show, as read with the data version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct ControlState {
    /// Number of their rows: stated licences and measured months. Both are append-only. A cached response has one
    /// revision.
    pub(crate) revision: i64,
    /// True if at least one source must not be redistributed.
    pub(crate) restricts: bool,
}

impl ControlState {
    /// Reads the columns `control_revision` and `restricts`.
    pub(crate) fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self { revision: row.try_get("control_revision")?, restricts: row.try_get("restricts")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(generation: i32, sequence: i64, position: i64) -> DataVersion {
        DataVersion {
            generation: GenerationId(generation),
            sequence,
            as_of: None,
            position: JournalPosition(position),
            is_repeated: false,
        }
    }

    #[test]
    fn a_repeated_version_is_named_with_its_position() {
        let first = version(3, 184_467, 92);
        assert_eq!(first.to_string(), "g3.184467");
        assert_eq!(DataVersion { is_repeated: true, ..first }.to_string(), "g3.184467.92");
    }

    #[test]
    fn a_version_reaches_itself_and_older_ones() {
        let served = version(3, 184_467, 92);
        for text in [served.to_string(), served.to_exact_text()] {
            let min = MinVersion::parse(&text).unwrap();
            assert!(served.reaches(&min) && version(3, 184_468, 93).reaches(&min), "{text}");
            let older = version(3, 184_466, 91);
            assert!(!older.reaches(&min) && older.is_older_than(&min), "{text}");
        }
    }

    #[test]
    fn a_sequence_of_another_generation_is_not_comparable() {
        let (min, other) = (MinVersion::parse("g3.10").unwrap(), version(2, 50, 99));
        assert!(!other.reaches(&min) && !other.is_older_than(&min));
    }
}
