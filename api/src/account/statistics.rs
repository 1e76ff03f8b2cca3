//! Usage of an account: monthly quota, rate-limit bucket, and statistics of calls by day, endpoint, key and outcome.

use chrono::{DateTime, NaiveDate, Utc};
use market::text_enum;
use serde::Serialize;
use store::{find_rows, sql_row};
use tokio_postgres::Client;

use super::audit::{AccountError, Result, find_row};
use crate::auth::{AccountId, Tier};

const USAGE: &str = include_str!("../../queries/accounts/usage.sql");
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
    /// Used and remaining calls of an account, with its limits.
    #[derive(Debug, Clone)]
    pub(crate) struct AccountUsage {
        pub(crate) tier: Tier,
        /// First day of the current month, UTC.
        pub(crate) month: NaiveDate,
        /// Number of calls in the month that count against the quota.
        pub(crate) used: i64,
        pub(crate) monthly_quota: i64,
        pub(crate) resets_at: DateTime<Utc>,
        pub(crate) rate_per_minute: i32,
        pub(crate) burst: i32,
        /// Number of calls that the rate limit would accept now.
        pub(crate) available: i64,
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
    /// Number of calls to one endpoint with one key.
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
    /// Refused or failed calls to one endpoint with the same outcome.
    #[derive(Debug, Clone)]
    pub(crate) struct RefusedCalls {
        pub(crate) outcome: CallOutcome,
        pub(crate) endpoint: String,
        pub(crate) calls: i64,
        pub(crate) last_at: DateTime<Utc>,
    }
}

/// Finds the usage of the account with this email address, which must be in lower case.
pub(crate) async fn find_usage(client: &Client, email: &str) -> Result<AccountUsage> {
    find_row(client, USAGE, &[&email]).await?.ok_or_else(|| AccountError::NoAccount(email.to_owned()))
}

/// Counts an account's calls by day and outcome, from the day `since` on.
pub(crate) async fn count_by_day(
    client: &Client,
    account_id: AccountId,
    since: NaiveDate,
) -> Result<Vec<DailyCalls>> {
    Ok(find_rows(client, BY_DAY, &[&account_id, &since]).await?)
}

/// Counts an account's calls by endpoint and key, from the day `since` on. The highest count comes first; at most 50
/// rows.
pub(crate) async fn count_by_endpoint(
    client: &Client,
    account_id: AccountId,
    since: NaiveDate,
) -> Result<Vec<EndpointCalls>> {
    Ok(find_rows(client, BY_ENDPOINT, &[&account_id, &since]).await?)
}

/// Counts an account's refused and failed calls by endpoint and outcome, from the day `since` on. The row with the
/// latest call comes first; at most 20 rows.
pub(crate) async fn count_refused(
    client: &Client,
    account_id: AccountId,
    since: NaiveDate,
) -> Result<Vec<RefusedCalls>> {
    Ok(find_rows(client, REFUSALS, &[&account_id, &since]).await?)
}
