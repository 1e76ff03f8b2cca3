//! `api audit`: audit log of an account.

use clap::Args;
use store::db::DatabaseSettings;
use telemetry::table::ListArgs;

use super::arguments::connect_as_owner;
use super::output::{self, RowList};
use crate::account::audit::list_email_history;
use crate::account::parse_email;

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
    output::print_rows(&entries, &list, &arguments.output);
    Ok(())
}
