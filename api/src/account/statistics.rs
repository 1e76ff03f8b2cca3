//! Statistics of an account's calls, by day, endpoint, key and outcome.

use chrono::{DateTime, NaiveDate, Utc};
use market::text_enum;
use serde::Serialize;
use tokio_postgres::{Client, Row};

use super::error::AccountError;
use crate::auth::ids::AccountId;

const BY_DAY: &str = include_str!("../../queries/accounts/calls_by_day.sql");
const BY_ENDPOINT: &str = include_str!("../../queries/accounts/calls_by_endpoint.sql");
const REFUSALS: &str = include_str!("../../queries/accounts/refusals.sql");

text_enum! {
    /// Result of a call in the usage statistics.
    pub enum CallOutcome {
        /// Status 2xx or 304
        Answered = "answered",
        /// Status 404
        NotFound = "not_found",
        /// Any other status 4xx
        Mistake = "mistake",
        /// Status 403
        Plan = "plan",
        /// Status 429, limit per minute
        Rate = "rate",
        /// Status 429, monthly quota
        Quota = "quota",
        /// Status 5xx
        Failed = "failed",
    }
}

/// Number of an account's calls with one outcome on one day.
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

/// Counts an account's calls by day and outcome. The first day is `since`.
pub(crate) async fn count_by_day(
    client: &Client,
    account_id: AccountId,
    since: NaiveDate,
) -> Result<Vec<DailyCalls>, AccountError> {
    let rows = client.query(BY_DAY, &[&account_id, &since]).await?;
    let read = |row: &Row| {
        Ok(DailyCalls {
            day: row.try_get("day")?,
            outcome: parse_outcome(row)?,
            calls: row.try_get("calls")?,
        })
    };
    rows.iter().map(read).collect()
}

/// Counts an account's calls by endpoint and key. The first day is `since`. The highest count comes first.
pub(crate) async fn count_by_endpoint(
    client: &Client,
    account_id: AccountId,
    since: NaiveDate,
) -> Result<Vec<EndpointCalls>, AccountError> {
    let rows = client.query(BY_ENDPOINT, &[&account_id, &since]).await?;
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

/// Counts an account's refused and failed calls by endpoint, newest first. The first day is `since`.
pub(crate) async fn count_refused(
    client: &Client,
    account_id: AccountId,
    since: NaiveDate,
) -> Result<Vec<RefusedCalls>, AccountError> {
    let rows = client.query(REFUSALS, &[&account_id, &since]).await?;
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
    word.parse().map_err(|reason| {
        AccountError::Refused(format!("cannot read the usage statistics: an outcome {reason}"))
    })
}
