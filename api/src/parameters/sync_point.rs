//! `updated_since`, `since` and `Last-Event-ID`: point from which the client's copy is synchronized.

mod change_kind;
mod journal_place;

use chrono::{DateTime, Utc};
use serde_json::json;

use super::{MinVersion, ParameterReader};

pub(crate) use change_kind::ChangeKind;
pub(crate) use journal_place::{JournalPlace, RowKey};

/// Header with the id of the last event that a client received.
const LAST_EVENT_ID: &str = "last-event-id";
/// Regular expression for a `sync_from`, the id of an event, or an instant.
const PATTERN: &str = "^([0-9a-f]{8}\\.[0-9]{1,18}(\\.[A-Za-z0-9_-]+)?|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,9})?Z)$";

/// Point after which changes are returned: a journal position or a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SyncPoint {
    /// `meta.sync_from` of a response, or the id of an event.
    Place {
        journal: String,
        place: JournalPlace,
    },
    Instant(DateTime<Utc>),
}

impl SyncPoint {
    fn read(text: &str) -> Option<Self> {
        match text.split_once('.') {
            Some((journal, place)) if journal.len() == 8 => {
                Some(Self::Place { journal: journal.to_owned(), place: JournalPlace::parse(place)? })
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
        let text = self.read_sync_text("updated_since")?;
        for filter in filters {
            let conflicts = self.is_given(filter);
            self.require(!conflicts, filter, "conflicts with updated_since, which returns every changed row");
        }
        self.parse_sync_point("updated_since", &text)
    }

    /// Reads the start of a change stream: the header `Last-Event-ID`, else `since`. A browser that reconnects sends the
    /// header with an unchanged query.
    pub(crate) fn read_stream_start(&mut self) -> Option<SyncPoint> {
        let since = self.read_sync_text("since");
        let header = self.headers.get(LAST_EVENT_ID);
        let last = header.map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned());
        match (last.filter(|last| !last.is_empty()), since) {
            (Some(last), _) => self.parse_sync_point("Last-Event-ID", &last),
            (None, Some(since)) => self.parse_sync_point("since", &since),
            (None, None) => None,
        }
    }

    fn read_sync_text(&mut self, name: &'static str) -> Option<String> {
        self.read_value(name, || json!({ "type": "string", "pattern": PATTERN }))
    }

    fn parse_sync_point(&mut self, name: &str, text: &str) -> Option<SyncPoint> {
        let since = SyncPoint::read(text);
        self.require(since.is_some(), name, "is neither the sync_from of a response nor an RFC 3339 instant");
        if let Some(SyncPoint::Place { place, .. }) = &since {
            self.min_version.raise(MinVersion::of_position(place.position.0));
        }
        since
    }
}

#[cfg(test)]
mod tests {
    use store::ids::JournalPosition;

    use super::*;

    #[test]
    fn positions_and_instants_are_told_apart() {
        let place = JournalPlace::after_commit(JournalPosition(812));
        let place = SyncPoint::Place { journal: "7f3a9c1d".to_owned(), place };
        assert_eq!(SyncPoint::read("7f3a9c1d.812"), Some(place));
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
