//! Properties of a request that follow from its parameters, such as the response format and the cost.

use chrono::{DateTime, NaiveDate, Utc};
use store::ids::GenerationId;

use super::MinVersion;

/// Number of JSON rows above which a response is expensive.
const MANY_ROWS: i64 = 1_000;
/// Number of CSV rows above which a response is expensive. The number is lower than for JSON, because a CSV row takes
/// longer: it is written cell by cell.
const MANY_ROWS_OF_CSV: i64 = 500;

/// Format of a response: JSON or CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum ResponseFormat {
    #[default]
    Json,
    Csv,
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
