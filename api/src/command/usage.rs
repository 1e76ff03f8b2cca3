//! `api usage`: quota, rate limit and calls of an account.

use chrono::{TimeDelta, Utc};
use clap::Args;
use serde_json::json;
use store::db::DatabaseSettings;
use tokio_postgres::Client;

use super::output;
use super::owner_connection::connect_as_owner;
use crate::account::statistics::count_by_endpoint;
use crate::account::usage::find_usage;
use crate::account::{accounts, parse_email};
use crate::error::quota_percentage;

/// Usage of an account: month, rate limit and calls.
#[derive(Debug, Args)]
pub struct UsageArguments {
    /// Email address of the account
    email: String,
    /// Number of days whose calls are listed by endpoint and key, instead of the usage of the limits
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(i64).range(1..=400))]
    calls: Option<i64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs `api usage`.
pub async fn run_usage(arguments: UsageArguments, database: &DatabaseSettings) -> anyhow::Result<()> {
    let email = parse_email(&arguments.email)?;
    let client = connect_as_owner(database).await?;
    if let Some(days) = arguments.calls {
        return calls(&client, &email, days, arguments.json).await;
    }
    let used = find_usage(&client, &email).await?;
    let object = json!({
        "account": email,
        "tier": used.tier,
        "month": used.month.format("%Y-%m").to_string(),
        "current": used.current,
        "limit": used.limit,
        "percentage": quota_percentage(used.current, used.limit),
        "resets_at": used.resets_at,
        "rate_per_minute": used.rate_per_minute,
        "burst": used.burst,
        "available_now": used.available_now,
    });
    output::print_object(&object, arguments.json);
    Ok(())
}

async fn calls(client: &Client, email: &str, days: i64, json: bool) -> anyhow::Result<()> {
    let account = accounts::find_account(client, email).await?;
    let since = Utc::now().date_naive() - TimeDelta::days(days - 1);
    let rows = count_by_endpoint(client, account.id, since).await?;
    let rows: Vec<_> = rows.iter().map(|row| json!(row)).collect();
    output::print_rows(&rows, &["endpoint", "key", "last_four", "calls", "answered", "last_at"], json);
    Ok(())
}
