//! `api usage`

use clap::Args;
use serde_json::json;
use store::db::DatabaseSettings;

use super::owner::owner;
use super::report;
use crate::account::email;
use crate::account::usage::usage;
use crate::error::percentage;

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
    let used = usage(&owner(database).await?, &email).await?;
    let object = json!({
        "account": email,
        "tier": used.tier,
        "month": used.month.format("%Y-%m").to_string(),
        "current": used.current,
        "limit": used.limit,
        "percentage": percentage(used.current, used.limit),
        "resets_at": used.resets_at,
        "rate_per_minute": used.rate_per_minute,
        "burst": used.burst,
        "available_now": used.available_now,
    });
    report::object(&object, it.json);
    Ok(())
}
