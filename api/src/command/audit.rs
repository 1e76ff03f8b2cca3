//! `api audit`: audit log of an account.

use clap::Args;
use serde_json::json;
use store::db::DatabaseSettings;

use super::output;
use super::owner_connection::connect_as_owner;
use crate::account::audit::list_email_history;
use crate::account::parse_email;

/// Arguments of `api audit`.
#[derive(Debug, Args)]
pub struct AuditArguments {
    /// Email address of the account, which may be deleted
    email: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs `api audit`.
pub async fn run_audit(arguments: AuditArguments, database: &DatabaseSettings) -> anyhow::Result<()> {
    let entries =
        list_email_history(&connect_as_owner(database).await?, &parse_email(&arguments.email)?).await?;
    let rows: Vec<_> = entries.iter().map(|entry| json!(entry)).collect();
    output::print_rows(&rows, &["at", "actor", "action", "details"], arguments.json);
    Ok(())
}
