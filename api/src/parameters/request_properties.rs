//! Properties of a request that follow from its parameters: response format, cost and minimum data version.
//!
//! A request can have data versions in `min_version`, `If-Min-Version`, the cursor, `updated_since` and entity tags. The
//! newest of these versions is the minimum.

use axum::http::HeaderName;
use chrono::{DateTime, NaiveDate, Utc};
use store::ids::GenerationId;

/// Number of JSON rows above which a response is expensive.
const MANY_ROWS: i64 = 1_000;
/// Number of CSV rows above which a response is expensive. The number is lower than for JSON, because a CSV row takes
/// longer: it is written cell by cell.
const MANY_ROWS_OF_CSV: i64 = 500;

/// Format of a response. Few endpoints offer iCalendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum ResponseFormat {
    #[default]
    Json,
    Csv,
    Calendar,
}

/// Properties of a request that its parameters determine.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RequestProperties {
    pub(crate) format: ResponseFormat,
    /// Requested maximum number of rows; 0 if the endpoint has no `limit`.
    pub(super) rows: i64,
    /// Oldest accepted data version, from `min_version`, `updated_since`, the cursor and headers.
    pub(crate) min_version: MinVersion,
    /// Oldest day that the request names. It must be within the tier's history.
    pub(crate) oldest_day: Option<NaiveDate>,
    /// True if a filter value was not checked, because the table of valid values (facet index) was missing.
    pub(crate) needs_facet_index: bool,
    /// Instant in the parameter `known_at`; `None` if absent. Its day must be within the tier's history.
    pub(crate) known_at: Option<DateTime<Utc>>,
    /// True if the request has `data_version` or `known_at`, and thus asks for an earlier state of the data.
    pub(super) asks_for_past: bool,
    /// Generation in the parameter `data_version`; `None` if absent. The response may come from the tables of this
    /// generation.
    pub(crate) named_generation: Option<GenerationId>,
}

impl RequestProperties {
    /// True if the response is expensive: many rows, or an earlier state of the data that is derived again.
    pub(crate) fn is_costly(&self) -> bool {
        self.asks_for_past
            || self.rows > if self.format == ResponseFormat::Csv { MANY_ROWS_OF_CSV } else { MANY_ROWS }
    }
}

/// Header that has the same effect as the parameter `min_version`.
pub(crate) const MIN_VERSION_HEADER: HeaderName = HeaderName::from_static("if-min-version");

/// Oldest data version that a request accepts. The default accepts every version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MinVersion {
    /// Minimum position in the change journal; 0 accepts every position.
    pub(crate) position: i64,
    /// Required generation and log sequence, from a version such as `g3.184467`. `None` if no log sequence is required.
    pub(crate) sequence: Option<(i32, i64)>,
    /// True if the client named the version in `min_version` or `If-Min-Version`. If the service has only older data, a
    /// request with an explicit version fails. A request without an explicit version gets the older data.
    pub(crate) is_explicit: bool,
}

impl MinVersion {
    /// Requires only this minimum position in the change journal.
    pub(crate) fn of_position(position: i64) -> Self {
        Self { position, ..Self::default() }
    }

    /// Parses `g3.184467`, or `g3.184467.92` with a journal position.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix('g')?.splitn(3, '.');
        let generation = i32::try_from(parse_digits(parts.next()?)?).ok()?;
        let sequence = parse_digits(parts.next()?)?;
        match parts.next() {
            Some(position) => Some(Self::of_position(parse_digits(position)?)),
            None => Some(Self { sequence: Some((generation, sequence)), ..Self::default() }),
        }
    }

    /// Newest version in the entity tags of an `If-None-Match`. Tags that this service did not issue are ignored.
    pub(crate) fn of_entity_tags(tags: &str) -> Self {
        let mut newest = Self::default();
        for tag in tags.split(',') {
            let opaque = tag.trim().trim_start_matches("W/").trim_matches('"');
            let version = opaque.split_once('-').and_then(|(version, _)| Self::parse(version));
            newest.raise(version.unwrap_or_default());
        }
        newest
    }

    /// Combines two minimums. The result has the greater position and the greater sequence of the two.
    pub(crate) fn raise(&mut self, other: Self) {
        self.position = self.position.max(other.position);
        self.sequence = self.sequence.max(other.sequence);
        self.is_explicit |= other.is_explicit;
    }
}

fn parse_digits(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_a_generation_a_sequence_and_perhaps_a_position() {
        let sequence = MinVersion { sequence: Some((3, 184_467)), ..MinVersion::default() };
        assert_eq!(MinVersion::parse("g3.184467"), Some(sequence));
        assert_eq!(MinVersion::parse("g3.184467.92"), Some(MinVersion::of_position(92)));
        for text in [
            "",
            "g",
            "g3",
            "3.1",
            "g3.",
            "g3.-1",
            "g3.1.",
            "g3.1.2.3",
            "g9999999999.1",
            "g3.99999999999999999999",
        ] {
            assert_eq!(MinVersion::parse(text), None, "{text}");
        }
    }

    #[test]
    fn entity_tags_carry_the_newest_of_their_versions() {
        let tags = "W/\"g1.5.7-aa\", \"g1.9.12-bb\", \"foreign\", *";
        assert_eq!(MinVersion::of_entity_tags(tags), MinVersion::of_position(12));
        assert_eq!(MinVersion::of_entity_tags("*"), MinVersion::default());
    }
}
