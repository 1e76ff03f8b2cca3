//! Response envelope `{data, meta}` and the fields of `meta`.

use chrono::NaiveDate;
use serde::Serialize;
use utoipa::ToSchema;

use crate::auth::tier::Tier;
use crate::read::projection::DataVersion;

/// One resource.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Single<T> {
    /// The resource.
    pub(crate) data: T,
    /// What the answer rests on.
    pub(crate) meta: Meta,
}

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct List<T> {
    /// The rows of the page, in order.
    pub(crate) data: Vec<T>,
    /// What the page rests on, and where the next one begins.
    pub(crate) meta: ListMeta,
}

/// What one resource's answer rests on.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Meta {
    /// The market's as-of date: the newest session applied.
    pub(crate) as_of: Option<NaiveDate>,
    /// Generation and log sequence the answer was made from, for example g3.184467.
    pub(crate) data_version: String,
    /// What to know before using the answer; left out when there is nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<Warning>,
}

/// What a page rests on, and where the next one begins.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ListMeta {
    /// Rows on this page.
    pub(crate) count: usize,
    /// Rows a page holds at most.
    pub(crate) limit: i64,
    /// Whether another page follows; exact.
    pub(crate) has_more: bool,
    /// Cursor of the next page; null on the last.
    pub(crate) next_cursor: Option<String>,
    /// The market's as-of date: the newest session applied.
    pub(crate) as_of: Option<NaiveDate>,
    /// Generation and log sequence the answer was made from, for example g3.184467.
    pub(crate) data_version: String,
    /// What to know before using the answer.
    pub(crate) warnings: Vec<Warning>,
    /// Symbols asked for that nothing is known of; left out where no symbols can be listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) missing: Option<Vec<String>>,
    /// What `updated_since` of a later request has to be to be told what changed after this answer; the same on every page
    /// of a list. Left out where there is no `updated_since`, and while the served generation changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sync_from: Option<String>,
    /// The day counted as today, where a default or a figure used it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) today: Option<NaiveDate>,
    /// Where the range begins because the tier reaches no further back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) depth: Option<Depth>,
}

/// The reach of the tier's historical data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Depth {
    /// First day of the range.
    pub(crate) from: NaiveDate,
    /// The tier whose reach it is.
    pub(crate) tier: Tier,
}

/// Something to know about an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Warning {
    /// Stable code, for example `unknown_symbol`.
    pub(crate) code: &'static str,
    /// The same for people.
    pub(crate) message: String,
    /// The parameter it is about.
    pub(crate) param: Option<&'static str>,
}

impl Meta {
    pub(crate) fn new(version: &DataVersion) -> Self {
        Self { as_of: version.as_of, data_version: version.to_string(), warnings: vec![] }
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
            warnings: vec![],
            missing: None,
            sync_from: None,
            today: None,
            depth: None,
        }
    }
}

impl ListMeta {
    /// Sets the start of a range without a start date, and the current day it depends on.
    pub(crate) fn set_depth(&mut self, depth: Option<Depth>, today: NaiveDate) {
        self.depth = depth;
        self.today = depth.map(|_| today);
    }

    /// Sets the unknown symbols, in `missing` and as warnings.
    pub(crate) fn set_missing(&mut self, missing: Vec<String>) {
        self.warnings.extend(missing.iter().map(|symbol| Warning::unknown_symbol(symbol)));
        self.missing = Some(missing);
    }
}

impl Warning {
    /// Warning about quarantined rows, if any.
    pub(crate) fn quarantined(count: i64) -> Option<Self> {
        let message = format!(
            "{count} rows are held back because their neighbours contradict them; metrics names them"
        );
        (count > 0).then_some(Self { code: "held_rows", message, param: None })
    }

    /// Warning about an unknown symbol in a list.
    fn unknown_symbol(symbol: &str) -> Self {
        Self {
            code: "unknown_symbol",
            message: format!("No stock with symbol {symbol}"),
            param: Some("symbols"),
        }
    }
}
