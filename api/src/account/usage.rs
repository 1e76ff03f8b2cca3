//! Usage of an account: the monthly quota and the rate-limit bucket.

use chrono::{DateTime, NaiveDate, Utc};
use tokio_postgres::Client;

use super::error::AccountError;
use crate::auth::tier::Tier;

const USAGE: &str = include_str!("../../queries/accounts/usage.sql");

/// Used and remaining calls of an account, with its limits.
#[derive(Debug, Clone)]
pub(crate) struct AccountUsage {
    pub(crate) tier: Tier,
    /// First day of the current month, UTC.
    pub(crate) month: NaiveDate,
    /// Number of calls in the month that count against the quota.
    pub(crate) current: i64,
    /// Monthly quota.
    pub(crate) limit: i64,
    pub(crate) resets_at: DateTime<Utc>,
    pub(crate) rate_per_minute: i32,
    pub(crate) burst: i32,
    /// Number of calls that the rate limit would accept now.
    pub(crate) available_now: i64,
}

/// Finds the usage of the account with this email address, which must be in lower case.
pub(crate) async fn find_usage(client: &Client, email: &str) -> Result<AccountUsage, AccountError> {
    let row = client.query_opt(USAGE, &[&email]).await?;
    let row = row.ok_or_else(|| AccountError::NoAccount(email.to_owned()))?;
    Ok(AccountUsage {
        tier: row.try_get("tier")?,
        month: row.try_get("month")?,
        current: row.try_get("used")?,
        limit: row.try_get("monthly_quota")?,
        resets_at: row.try_get("resets_at")?,
        rate_per_minute: row.try_get("rate_per_minute")?,
        burst: row.try_get("burst")?,
        available_now: row.try_get("available")?,
    })
}
