//! Points in the history of the data. `updated_since`, `since` and `Last-Event-ID` start a synchronization.
//! `data_version` and `known_at` select an earlier state of the data.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, Utc};
use chrono_tz::America::New_York;
use market::text_enum;
use serde_json::json;
use store::ids::JournalPosition;
use store::versions::VersionName;

use super::output::VERSION_PATTERN;
use super::reader::parse_date;
use super::{MinVersion, ParameterReader};

/// Header with the id of the last event that a client received.
const LAST_EVENT_ID: &str = "last-event-id";
/// Regular expression for the start of a synchronization: a `sync_from`, the id of a change event, a day or an instant.
const PATTERN: &str = "^([0-9a-f]{8}\\.[0-9]{1,18}(\\.[A-Za-z0-9_-]+)?|[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2}))?)$";

/// Start of a synchronization. The response has the changes after this place in the journal, or after this time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SyncPoint {
    /// Place in the journal. The client sent the `meta.sync_from` of a response or the id of a change event.
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
            _ if text.contains('T') => {
                let instant = DateTime::parse_from_rfc3339(text).ok()?.to_utc();
                Some(Self::Instant(instant))
            }
            _ => midnight(parse_date(text)?).map(Self::Instant),
        }
    }
}

impl ParameterReader<'_> {
    /// Reads `updated_since`, and refuses it together with a filter. With a filter, the client would miss changed rows
    /// that no longer match.
    pub(crate) fn read_updated_since(&mut self, filters: &[&'static str]) -> Option<SyncPoint> {
        let text = self.read_sync_text("updated_since");
        self.describe(
            "updated_since",
            "Returns only the rows that changed after this point, in the order of the changes. Deleted rows have the status\n\
             `cancelled`. The point is the `meta.sync_from` of an earlier response, an instant (RFC 3339) by the clock of the\n\
             service, or a day, which means its start in New York: for example `2026-11-01`.",
        );
        for filter in filters {
            self.exclude(filter, &["updated_since"]);
        }
        self.parse_sync_point("updated_since", &text?)
    }

    /// Reads the start of a change stream. A reconnecting browser sends the header `Last-Event-ID` and also `since`.
    /// The header has precedence, because it is newer.
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
        self.require(
            since.is_some(),
            name,
            "is neither the sync_from of a response, nor an RFC 3339 instant, nor a date, YYYY-MM-DD",
        );
        if let Some(SyncPoint::Place { place, .. }) = &since {
            self.properties.min_version.raise(MinVersion::of_position(place.position.0));
        }
        since
    }
}

/// Regular expression for a day or an instant.
const INSTANT_PATTERN: &str =
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2}))?$";

/// Request for an earlier state of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Knowledge {
    /// State of the data in an earlier response, selected by its data version.
    Version(VersionName),
    /// State of the data at an instant: only data that the service had by then.
    At(DateTime<Utc>),
}

/// Parses an instant or a day. A day becomes the last microsecond of this day in New York. `None` if the text is
/// invalid.
fn parse_instant(text: &str) -> Option<DateTime<Utc>> {
    if text.contains('T') {
        return DateTime::parse_from_rfc3339(text).ok().map(|instant| instant.to_utc());
    }
    let next = parse_date(text)?.checked_add_days(Days::new(1))?;
    midnight(next)?.checked_sub_signed(TimeDelta::microseconds(1))
}

/// Start of a day in New York.
fn midnight(day: NaiveDate) -> Option<DateTime<Utc>> {
    Some(day.and_time(NaiveTime::MIN).and_local_timezone(New_York).earliest()?.to_utc())
}

impl ParameterReader<'_> {
    /// Reads `data_version` and `known_at`. `None` if the request has neither parameter, or if the value is invalid.
    pub(crate) fn read_knowledge(&mut self) -> Option<Knowledge> {
        let version = self.read_version("data_version");
        let known_at =
            self.read_value("known_at", || json!({ "type": "string", "pattern": INSTANT_PATTERN }));
        self.describe(
            "data_version",
            "`meta.data_version` of an earlier response, for example `g3.184467`. The response has the data of this version. For the same request, tier\n\
             and current day, it has the same bytes as the earlier response. Status 412 if this version was never served, 410\n\
             if this program cannot derive it any more.",
        );
        self.describe(
            "known_at",
            "Instant (RFC 3339) or day. The response has only the data that the service had at this instant. A day means its\n\
             end in New York. With `as_of`, the response shows the day `as_of`, from the data of this instant. Status 403 for\n\
             a day before the tier's history.",
        );
        self.properties.asks_for_past = version.is_some() || known_at.is_some();
        self.exclude("known_at", &["data_version"]);
        self.exclude("updated_since", &["data_version", "known_at"]);
        if let Some(name) = version {
            self.properties.named_generation = Some(name.generation);
            return Some(Knowledge::Version(name));
        }
        let text = known_at?;
        let instant = parse_instant(&text);
        self.require(instant.is_some(), "known_at", "is neither an RFC 3339 instant nor a date, YYYY-MM-DD");
        self.properties.known_at = instant;
        instant.map(Knowledge::At)
    }

    /// Reads the name of a data version. `None` if the parameter is absent or invalid.
    pub(crate) fn read_version(&mut self, parameter: &'static str) -> Option<VersionName> {
        let text = self.read_value(parameter, || json!({ "type": "string", "pattern": VERSION_PATTERN }))?;
        let name = text.parse().ok();
        self.require(name.is_some(), parameter, "is not the data_version of a response");
        name
    }
}

/// Maximum length of a place as text, in bytes. Symbols and ids are much shorter.
const LONGEST: usize = 512;

text_enum! {
    /// Kind of changed data. A change of the kind `dividends` or `splits` has one record. A change of the kind `notices`
    /// says what happened to a security. A change of another kind has the complete new value of one security, for
    /// example all its ticker events.
    pub(crate) enum ChangeKind {
        // The order of the variants is the order of delivery within a commit: a rename precedes the rows of the new
        // symbol.
        Events = "events", Dividends = "dividends", Splits = "splits", Factors = "factors", Statuses = "statuses",
        Lists = "lists", Notices = "notices",
    }
}

impl ChangeKind {
    /// Kinds of a copy of the data. Notices belong to no copy.
    pub(crate) const COPIED: &'static [Self] =
        &[Self::Events, Self::Dividends, Self::Splits, Self::Factors, Self::Statuses, Self::Lists];
}

/// Place in the journal: directly after one change, or after a whole commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JournalPlace {
    /// Position of the commit in the journal.
    pub(crate) position: JournalPosition,
    /// Key of the last change before the place, for a place within the commit. `None` for the end of the commit.
    pub(crate) row: Option<RowKey>,
}

/// Key of a changed row within a commit. Rows are delivered in the order of these fields; removed rows are first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowKey {
    /// `false` for a removed row.
    pub(crate) live: bool,
    pub(crate) kind: ChangeKind,
    /// Canonical symbol.
    pub(crate) symbol: String,
    /// Id of the row; empty for kinds with one value per security.
    pub(crate) id: String,
}

impl JournalPlace {
    /// Place after all changes of a commit.
    pub(crate) fn after_commit(position: JournalPosition) -> Self {
        Self { position, row: None }
    }

    /// Parses `812` (the end of a commit) or `812.W3RydWUs…` (a place within the commit, with the row key in base64).
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.len() > LONGEST {
            return None;
        }
        let (digits, row) = match text.split_once('.') {
            Some((digits, row)) => (digits, Some(RowKey::parse(row)?)),
            None => (text, None),
        };
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        let position = digits.parse().ok().filter(|_| is_number)?;
        Some(Self { position, row })
    }

    /// Position of the last commit that lies completely before this place. A reader that reads only whole commits
    /// continues after this commit.
    pub(crate) fn completed_position(&self) -> JournalPosition {
        match self.row {
            Some(_) => JournalPosition(self.position.0.saturating_sub(1)),
            None => self.position,
        }
    }

    /// True if the commit at `position` may have a change after this place.
    pub(crate) fn may_precede(&self, position: JournalPosition) -> bool {
        match self.row {
            Some(_) => self.position <= position,
            None => self.position < position,
        }
    }

    /// Text of the place, in the notation of [`JournalPlace::parse`].
    pub(crate) fn to_text(&self) -> Result<String, serde_json::Error> {
        match &self.row {
            Some(row) => Ok(format!("{}.{}", self.position, row.to_text()?)),
            None => Ok(self.position.to_string()),
        }
    }
}

impl RowKey {
    fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (live, kind, symbol, id): (bool, ChangeKind, String, String) =
            serde_json::from_slice(&bytes).ok()?;
        // Postgres text cannot contain NUL.
        let is_text = !symbol.contains('\0') && !id.contains('\0');
        is_text.then_some(Self { live, kind, symbol, id })
    }

    fn to_text(&self) -> Result<String, serde_json::Error> {
        let key = (self.live, self.kind, &self.symbol, &self.id);
        Ok(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&key)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::ids::JournalPosition;

    #[test]
    fn positions_and_instants_are_told_apart() {
        let place = JournalPlace::after_commit(JournalPosition(812));
        let place = SyncPoint::Place { journal: "7f3a9c1d".to_owned(), place };
        assert_eq!(SyncPoint::read("7f3a9c1d.812"), Some(place));
        let instant = "2026-11-22T08:20:00.5Z";
        assert_eq!(SyncPoint::read(instant), instant.parse().ok().map(SyncPoint::Instant));
        assert_eq!(SyncPoint::read("2026-11-22T10:20:00.5+02:00"), SyncPoint::read(instant));
        assert_eq!(SyncPoint::read("2026-11-22"), SyncPoint::read("2026-11-22T05:00:00Z"));
        for text in [
            "",
            "7f3a9c1d",
            "7f3a9c1d.-1",
            "7f3a9c1d.99999999999999999999",
            "2026-11-31",
            "2026-11-2",
            "2026-13-01T00:00:00Z",
        ] {
            assert_eq!(SyncPoint::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_day_counts_to_its_end_in_new_york() {
        for (text, expected) in [
            ("2024-06-28", Some("2024-06-29T03:59:59.999999Z")),
            ("2024-01-31", Some("2024-02-01T04:59:59.999999Z")),
            ("2024-06-28T12:00:00Z", Some("2024-06-28T12:00:00Z")),
            ("2024-06-28T12:00:00+02:00", Some("2024-06-28T10:00:00Z")),
            ("2024-06-31", None),
            ("2024-06-28T25:00:00Z", None),
            ("today", None),
        ] {
            assert_eq!(parse_instant(text), expected.map(|text| text.parse().unwrap()), "{text}");
        }
    }

    fn key() -> RowKey {
        RowKey { live: true, kind: ChangeKind::Splits, symbol: "BRK.B".to_owned(), id: "x/1".to_owned() }
    }

    #[test]
    fn a_place_is_the_same_after_its_text() {
        for row in [None, Some(key())] {
            let place = JournalPlace { position: JournalPosition(812), row };
            let text = place.to_text().expect("renders");
            assert_eq!(JournalPlace::parse(&text), Some(place), "{text}");
        }
        let nul =
            JournalPlace { position: JournalPosition(1), row: Some(RowKey { id: "\0".to_owned(), ..key() }) };
        let long =
            JournalPlace { position: JournalPosition(1), row: Some(RowKey { id: "x".repeat(500), ..key() }) };
        for place in [nul, long] {
            assert_eq!(JournalPlace::parse(&place.to_text().expect("renders")), None);
        }
        for text in ["", ".", "-1", "+1", "1.", "1.x", "99999999999999999999", "1.W10"] {
            assert_eq!(JournalPlace::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_change_follows_a_place_once() {
        let at = |position: i64| JournalPosition(position);
        let after = JournalPlace::after_commit(at(812));
        assert_eq!([811, 812, 813].map(|position| after.may_precede(at(position))), [false, false, true]);
        let within = JournalPlace { position: at(812), row: Some(key()) };
        assert_eq!([811, 812, 813].map(|position| within.may_precede(at(position))), [false, true, true]);
    }

    #[test]
    fn a_place_within_a_commit_has_not_completed_it() {
        let position = JournalPosition(812);
        assert_eq!(JournalPlace::after_commit(position).completed_position(), position);
        let within = JournalPlace { position, row: Some(key()) };
        assert_eq!(within.completed_position(), JournalPosition(811));
    }
}
