//! Usage statistics of an account, by day, endpoint, key and outcome.

use chrono::{DateTime, NaiveDate, Utc};
use market::text_enum;
use serde::Serialize;
use tokio_postgres::{Client, Row};

use super::error::AccountError;

const BY_DAY: &str = include_str!("../../queries/accounts/calls_by_day.sql");
const BY_ENDPOINT: &str = include_str!("../../queries/accounts/calls_by_endpoint.sql");
const REFUSALS: &str = include_str!("../../queries/accounts/refusals.sql");

text_enum! {
    /// What came of a call, as statistics count it.
    pub enum CallOutcome {
        /// 2xx and 304
        Answered = "answered",
        /// 404
        NotFound = "not_found",
        /// Every other 4xx
        Mistake = "mistake",
        /// 403
        Plan = "plan",
        /// 429, of the minute
        Rate = "rate",
        /// 429, of the month
        Quota = "quota",
        /// 5xx
        Failed = "failed",
    }
}

/// Number of calls on a day with one outcome.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct DailyCalls {
    pub(crate) day: NaiveDate,
    pub(crate) outcome: CallOutcome,
    pub(crate) calls: i64,
}

/// Number of calls of an endpoint by one key.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct EndpointCalls {
    pub(crate) endpoint: String,
    pub(crate) key: String,
    pub(crate) last_four: String,
    pub(crate) calls: i64,
    pub(crate) answered: i64,
    pub(crate) last_at: DateTime<Utc>,
}

/// Number of refused or failed calls of an endpoint.
#[derive(Debug, Clone)]
pub(crate) struct RefusedCalls {
    pub(crate) outcome: CallOutcome,
    pub(crate) endpoint: String,
    pub(crate) calls: i64,
    pub(crate) last_at: DateTime<Utc>,
}

/// Calls by day and outcome, from `since` on.
pub(crate) async fn count_by_day(
    client: &Client,
    account: i64,
    since: NaiveDate,
) -> Result<Vec<DailyCalls>, AccountError> {
    let rows = client.query(BY_DAY, &[&account, &since]).await?;
    let read = |row: &Row| {
        Ok(DailyCalls { day: row.try_get("day")?, outcome: parse_outcome(row)?, calls: row.try_get("calls")? })
    };
    rows.iter().map(read).collect()
}

/// Calls by endpoint and key, from `since` on, the highest count first.
pub(crate) async fn count_by_endpoint(
    client: &Client,
    account: i64,
    since: NaiveDate,
) -> Result<Vec<EndpointCalls>, AccountError> {
    let rows = client.query(BY_ENDPOINT, &[&account, &since]).await?;
    let read = |row: &Row| {
        Ok(EndpointCalls {
            endpoint: row.try_get("endpoint")?,
            key: row.try_get("key")?,
            last_four: row.try_get("last_four")?,
            calls: row.try_get("calls")?,
            answered: row.try_get("answered")?,
            last_at: row.try_get("last_at")?,
        })
    };
    rows.iter().map(read).collect()
}

/// Refused and failed calls from `since` on, newest first.
pub(crate) async fn count_refused(
    client: &Client,
    account: i64,
    since: NaiveDate,
) -> Result<Vec<RefusedCalls>, AccountError> {
    let rows = client.query(REFUSALS, &[&account, &since]).await?;
    let read = |row: &Row| {
        Ok(RefusedCalls {
            outcome: parse_outcome(row)?,
            endpoint: row.try_get("endpoint")?,
            calls: row.try_get("calls")?,
            last_at: row.try_get("last_at")?,
        })
    };
    rows.iter().map(read).collect()
}

fn parse_outcome(row: &Row) -> Result<CallOutcome, AccountError> {
    let word: &str = row.try_get("outcome")?;
    word.parse().map_err(|reason| AccountError::Refused(format!("an outcome in the statistics {reason}")))
}
