//! Statistics of an account's calls, by day, endpoint, key and outcome.

use chrono::{DateTime, NaiveDate, Utc};
use market::text_enum;
use serde::Serialize;
use store::{FromRow, sql_row};
use tokio_postgres::Client;

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
        ClientError = "mistake",
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

sql_row! {
    /// Number of an account's calls with one outcome on one day.
    #[derive(Debug, Clone, Serialize)]
    pub(crate) struct DailyCalls {
        pub(crate) day: NaiveDate,
        pub(crate) outcome: CallOutcome,
        pub(crate) calls: i64,
    }
}

sql_row! {
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
}

sql_row! {
    /// Number of refused or failed calls of an endpoint with one outcome, and time of the last such call.
    #[derive(Debug, Clone)]
    pub(crate) struct RefusedCalls {
        pub(crate) outcome: CallOutcome,
        pub(crate) endpoint: String,
        pub(crate) calls: i64,
        pub(crate) last_at: DateTime<Utc>,
    }
}

/// Counts an account's calls by day and outcome. The first day is `since`.
pub(crate) async fn count_by_day(
    client: &Client,
    account_id: AccountId,
    since: NaiveDate,
) -> Result<Vec<DailyCalls>, AccountError> {
    let rows = client.query(BY_DAY, &[&account_id, &since]).await?;
    Ok(rows.iter().map(DailyCalls::from_row).collect::<Result<_, _>>()?)
}

/// Counts an account's calls by endpoint and key. The first day is `since`. The highest count comes first.
pub(crate) async fn count_by_endpoint(
    client: &Client,
    account_id: AccountId,
    since: NaiveDate,
) -> Result<Vec<EndpointCalls>, AccountError> {
    let rows = client.query(BY_ENDPOINT, &[&account_id, &since]).await?;
    Ok(rows.iter().map(EndpointCalls::from_row).collect::<Result<_, _>>()?)
}

/// Counts an account's refused and failed calls by endpoint and outcome. The first day is `since`. The endpoint with
/// the latest such call comes first; at most 20 rows.
pub(crate) async fn count_refused(
    client: &Client,
    account_id: AccountId,
    since: NaiveDate,
) -> Result<Vec<RefusedCalls>, AccountError> {
    let rows = client.query(REFUSALS, &[&account_id, &since]).await?;
    Ok(rows.iter().map(RefusedCalls::from_row).collect::<Result<_, _>>()?)
}
