//! `updated_since`: point after which changes are returned to a client that keeps a copy of the data.

use chrono::{DateTime, Utc};
use serde_json::json;
use store::ids::JournalPosition;

use super::{MinVersion, ParameterReader};

/// Regular expression for a `sync_from` or an instant.
const PATTERN: &str =
    "^([0-9a-f]{8}\\.[0-9]{1,18}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,9})?Z)$";

/// Point after which changes are returned: a journal position or a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SyncPoint {
    /// `meta.sync_from` of a response.
    Position {
        journal: String,
        position: JournalPosition,
    },
    Instant(DateTime<Utc>),
}

impl SyncPoint {
    fn read(text: &str) -> Option<Self> {
        match text.split_once('.') {
            Some((journal, position)) if journal.len() == 8 => {
                let digits = position.bytes().all(|b| b.is_ascii_digit());
                let position = position.parse().ok().filter(|_| digits)?;
                Some(Self::Position { journal: journal.to_owned(), position })
            }
            _ => {
                let instant = DateTime::parse_from_rfc3339(text).ok()?.to_utc();
                Some(Self::Instant(instant))
            }
        }
    }
}

impl ParameterReader<'_> {
    /// Reads `updated_since`. It conflicts with filters: a row that a change removes from a filter would not be
    /// reported.
    pub(crate) fn read_updated_since(&mut self, filters: &[&'static str]) -> Option<SyncPoint> {
        let text = self.read_value("updated_since", || json!({ "type": "string", "pattern": PATTERN }))?;
        for filter in filters {
            let conflicts = self.is_given(filter);
            self.require(!conflicts, filter, "conflicts with updated_since, which returns every changed row");
        }
        let since = SyncPoint::read(&text);
        self.require(
            since.is_some(),
            "updated_since",
            "is neither the sync_from of a response nor an RFC 3339 instant",
        );
        if let Some(SyncPoint::Position { position, .. }) = &since {
            self.min_version.raise(MinVersion::of_position(position.0));
        }
        since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_instants_are_told_apart() {
        let position = SyncPoint::Position { journal: "7f3a9c1d".to_owned(), position: JournalPosition(812) };
        assert_eq!(SyncPoint::read("7f3a9c1d.812"), Some(position));
        let instant = "2026-11-22T08:20:00.5Z";
        assert_eq!(SyncPoint::read(instant), instant.parse().ok().map(SyncPoint::Instant));
        for text in [
            "",
            "7f3a9c1d",
            "7f3a9c1d.-1",
            "7f3a9c1d.99999999999999999999",
            "2026-11-22",
            "2026-13-01T00:00:00Z",
        ] {
            assert_eq!(SyncPoint::read(text), None, "{text}");
        }
    }
}
