//! `api audit`: audit log of an account.

use clap::Args;
use serde_json::json;
use store::db::DatabaseSettings;

use super::owner::owner;
use super::report;
use crate::account::audit::history;
use crate::account::email;

/// The audit log of an account.
#[derive(Debug, Args)]
pub struct Audit {
    /// Email address of the account, which may be deleted
    email: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs `api audit`.
pub async fn run_audit(it: Audit, database: &DatabaseSettings) -> anyhow::Result<()> {
    let entries = history(&owner(database).await?, &email(&it.email)?).await?;
    let rows: Vec<_> = entries.iter().map(|entry| json!(entry)).collect();
    report::rows(&rows, &["at", "actor", "action", "details"], it.json);
    Ok(())
}
