//! `api usage` and `api audit`: quota, rate limit, calls and audit log of an account.

use chrono::{TimeDelta, Utc};
use clap::Args;
use serde_json::json;
use store::db::DatabaseSettings;
use telemetry::table::ListArgs;
use tokio_postgres::Client;

use super::{RowList, connect_as_owner, print_object, print_rows};
use crate::account::audit::list_email_history;
use crate::account::statistics::{count_by_endpoint, find_usage};
use crate::account::{accounts, parse_email};
use crate::error::quota_percentage;

/// Arguments of `api usage`.
#[derive(Debug, Args)]
pub(super) struct UsageArguments {
    /// Email address of the account
    email: String,
    /// List the calls of the last DAYS days by endpoint and key, instead of quota and rate limit
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(i64).range(1..=400))]
    calls: Option<i64>,
    #[command(flatten)]
    output: ListArgs,
}

/// Runs `api usage`.
pub(super) async fn run_usage(arguments: UsageArguments, database: &DatabaseSettings) -> anyhow::Result<()> {
    let email = parse_email(&arguments.email)?;
    let client = connect_as_owner(database).await?;
    if let Some(days) = arguments.calls {
        return calls(&client, &email, days, &arguments.output).await;
    }
    let used = find_usage(&client, &email).await?;
    let object = json!({
        "account": email,
        "tier": used.tier,
        "month": used.month.format("%Y-%m").to_string(),
        "current": used.used,
        "limit": used.monthly_quota,
        "percentage": quota_percentage(used.used, used.monthly_quota),
        "resets_at": used.resets_at,
        "rate_per_minute": used.rate_per_minute,
        "burst": used.burst,
        "available_now": used.available,
    });
    print_object(&object, arguments.output.json);
    Ok(())
}

async fn calls(client: &Client, email: &str, days: i64, output: &ListArgs) -> anyhow::Result<()> {
    let account = accounts::find_account(client, email).await?;
    let since = Utc::now().date_naive() - TimeDelta::days(days - 1);
    let rows = count_by_endpoint(client, account.id, since).await?;
    let empty = format!("no calls: no key of this account was used in the last {days} days");
    let list = RowList {
        nouns: ["endpoint and key", "endpoints and keys"],
        columns: &[
            ("endpoint", "endpoint"),
            ("key", "key"),
            ("last_four", "ends in"),
            ("calls", "calls"),
            ("answered", "answered"),
            ("last_at", "last (UTC)"),
        ],
        empty: &empty,
    };
    print_rows(&rows, &list, output);
    Ok(())
}

/// Arguments of `api audit`.
#[derive(Debug, Args)]
pub(super) struct AuditArguments {
    /// Email address of the account. The account may already be deleted
    email: String,
    #[command(flatten)]
    output: ListArgs,
}

/// Runs `api audit`.
pub(super) async fn run_audit(arguments: AuditArguments, database: &DatabaseSettings) -> anyhow::Result<()> {
    let entries =
        list_email_history(&connect_as_owner(database).await?, &parse_email(&arguments.email)?).await?;
    let list = RowList {
        nouns: ["change", "changes"],
        columns: &[("at", "at (UTC)"), ("actor", "actor"), ("action", "action"), ("details", "details")],
        empty: "no changes: no account has or had this address",
    };
    print_rows(&entries, &list, &arguments.output);
    Ok(())
}
