//! `api usage`

use chrono::{DateTime, NaiveDate, Utc};
use clap::Args;
use serde_json::json;
use store::db::DatabaseSettings;

use super::email::email;
use super::error::AccountError;
use super::owner::owner;
use super::report;
use crate::error::percentage;
use crate::tier::Tier;

const USAGE: &str = include_str!("../../queries/accounts/usage.sql");

/// What an account has used.
#[derive(Debug, Args)]
pub struct Usage {
    /// Email address of the account
    email: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs `api usage`.
pub async fn run_usage(it: Usage, database: &DatabaseSettings) -> anyhow::Result<()> {
    let email = email(&it.email)?;
    let row = owner(database).await?.query_opt(USAGE, &[&email]).await?;
    let row = row.ok_or_else(|| AccountError::NoAccount(email.clone()))?;
    let (current, limit): (i64, i64) = (row.try_get("used")?, row.try_get("monthly_quota")?);
    let usage = json!({
        "account": email,
        "tier": row.try_get::<_, Tier>("tier")?,
        "month": row.try_get::<_, NaiveDate>("month")?.format("%Y-%m").to_string(),
        "current": current,
        "limit": limit,
        "percentage": percentage(current, limit),
        "resets_at": row.try_get::<_, DateTime<Utc>>("resets_at")?,
        "rate_per_minute": row.try_get::<_, i32>("rate_per_minute")?,
        "burst": row.try_get::<_, i32>("burst")?,
        "available_now": row.try_get::<_, i64>("available")?,
    });
    report::object(&usage, it.json);
    Ok(())
}
