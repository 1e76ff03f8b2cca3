//! Response envelope `{data, meta}` and the fields of `meta`.

use std::collections::BTreeSet;

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::auth::Tier;
use crate::read::DataVersion;

/// Response with one resource.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Single<T> {
    /// Requested resource, for example the metrics of a stock.
    pub(crate) data: T,
    /// Data version and warnings of the response.
    pub(crate) meta: Meta,
}

/// Response with a page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct List<T> {
    /// The rows of the page, in order.
    pub(crate) data: Vec<T>,
    /// Size, next cursor, data version and warnings of the page.
    pub(crate) meta: ListMeta,
}

/// Data version and warnings of a response with one resource.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub(crate) struct Meta {
    /// As-of date of the market: the newest session in the data.
    pub(crate) as_of: Option<NaiveDate>,
    /// Version of the data, for example g3.184467: generation 3 of the tables, with the log up to message 184467. If an
    /// earlier version with other data has the same two numbers, the version has a third number, for example
    /// g3.184467.92. The parameter `data_version` accepts this value.
    pub(crate) data_version: String,
    /// Instant in the parameter `known_at`. Omitted if the request does not have this parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) known_at: Option<DateTime<Utc>>,
    /// Warnings about the response; omitted if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<Warning>,
    /// Current day in New York. Omitted if the response does not depend on the current day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) today: Option<NaiveDate>,
    /// Start of the history in the response, set by the tier. Earlier days and yearly figures are left out or null.
    /// Omitted for responses without a history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) depth: Option<Depth>,
}

/// Size, next cursor, data version and warnings of a page.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub(crate) struct ListMeta {
    /// Number of rows on this page.
    pub(crate) count: usize,
    /// Maximum number of rows on a page.
    pub(crate) limit: i64,
    /// True if another page follows.
    pub(crate) has_more: bool,
    /// Cursor of the next page; null on the last page.
    pub(crate) next_cursor: Option<String>,
    /// As-of date of the market: the newest session in the data.
    pub(crate) as_of: Option<NaiveDate>,
    /// Version of the data, for example g3.184467: generation 3 of the tables, with the log up to message 184467. If an
    /// earlier version with other data has the same two numbers, the version has a third number, for example
    /// g3.184467.92. The parameter `data_version` accepts this value.
    pub(crate) data_version: String,
    /// Instant in the parameter `known_at`. Omitted if the request does not have this parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) known_at: Option<DateTime<Utc>>,
    /// Warnings about the response.
    pub(crate) warnings: Vec<Warning>,
    /// Requested symbols that are unknown. Omitted if the endpoint has no `symbols` parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) missing: Option<Vec<String>>,
    /// Value for the parameter `updated_since`. A later request with this value returns the changes since this
    /// response. All pages of a list have the same value. Omitted if the endpoint does not support `updated_since`, and
    /// for a short time while the service switches to rebuilt data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sync_from: Option<String>,
    /// Current day in New York. Omitted if the response does not depend on the current day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) today: Option<NaiveDate>,
    /// Start of the returned history, set by the tier. Omitted if the request names a start date, and for responses
    /// without a history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) depth: Option<Depth>,
    /// Sources of the rows and of the exchange rates to `currency`. `/v1/sources` has their licences. Omitted for lists
    /// of several securities, and if the rows do not name their sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sources: Option<BTreeSet<String>>,
}

/// Start of the returned history, set by the tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Depth {
    /// First day of the returned history.
    pub(crate) from: NaiveDate,
    /// Tier that sets the limit.
    pub(crate) tier: Tier,
}

/// Code of the warning about unknown symbols.
pub(crate) const UNKNOWN_SYMBOL: &str = "unknown_symbol";

/// Warning about a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Warning {
    /// Stable code, for example `unknown_symbol`.
    pub(crate) code: &'static str,
    /// Message for people.
    pub(crate) message: String,
    /// Parameter that caused the warning; null if no parameter caused it.
    pub(crate) param: Option<&'static str>,
}

impl Meta {
    pub(crate) fn new(version: &DataVersion) -> Self {
        Self { as_of: version.as_of, data_version: version.to_string(), ..Self::default() }
    }

    /// Sets the start of the history, and the current day that determines it.
    pub(crate) fn with_depth(self, depth: Depth, today: NaiveDate) -> Self {
        Self { depth: Some(depth), today: Some(today), ..self }
    }
}

impl ListMeta {
    pub(crate) fn new(version: &DataVersion, count: usize, limit: i64, next_cursor: Option<String>) -> Self {
        Self {
            count,
            limit,
            has_more: next_cursor.is_some(),
            next_cursor,
            as_of: version.as_of,
            data_version: version.to_string(),
            ..Self::default()
        }
    }

    /// Sets the start of the history, and the current day that determines it. `depth` is `None` if the request names a
    /// start date; both fields are then empty.
    pub(crate) fn set_depth(&mut self, depth: Option<Depth>, today: NaiveDate) {
        self.depth = depth;
        self.today = depth.map(|_| today);
    }

    /// Sets the unknown symbols of the request, and adds one warning about all of them. `None` leaves out the field.
    pub(crate) fn set_missing(&mut self, missing: impl Into<Option<Vec<String>>>) {
        self.missing = missing.into();
        self.warnings.extend(self.missing.as_deref().and_then(Warning::unknown_symbols));
    }
}

impl Warning {
    /// Warning about `count` quarantined rows; `None` if `count` is 0.
    pub(crate) fn quarantined(count: i64) -> Option<Self> {
        let message = format!(
            "{count} rows are quarantined because their neighbours contradict them; the metrics list them"
        );
        (count > 0).then_some(Self { code: "held_rows", message, param: None })
    }

    /// Warning about older revisions that a response leaves out.
    pub(crate) fn older_revisions() -> Self {
        let message =
            "Older revisions are left out: there are too many, or another program version has their rules";
        Self { code: "older_revisions", message: message.to_owned(), param: None }
    }

    /// Warning about the unknown symbols in a list; `None` if all are known.
    fn unknown_symbols(missing: &[String]) -> Option<Self> {
        let message = match missing {
            [] => return None,
            [symbol] => format!("No stock with symbol {symbol}"),
            [first, ..] => format!(
                "No stock with {} of the symbols, for example {first}; meta.missing has all of them",
                missing.len()
            ),
        };
        Some(Self { code: UNKNOWN_SYMBOL, message, param: Some("symbols") })
    }
}
