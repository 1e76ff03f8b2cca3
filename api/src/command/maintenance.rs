//! `api maintenance …`: planned work that the status of the service announces.

use anyhow::ensure;
use chrono::{DateTime, Utc};
use clap::Subcommand;
use serde_json::json;
use store::db::{DatabaseSettings, connect_accounts};
use telemetry::table::ListArgs;

use super::{RowList, print_object, print_rows};
use crate::app::service_history::find_maintenance;

const ADD: &str = include_str!("../../queries/maintenance/add.sql");
const REMOVE: &str = include_str!("../../queries/maintenance/remove.sql");
/// Maximum length of a description, in characters.
const MAX_LENGTH: usize = 500;
const MAX_LISTED: i64 = 10_000;

/// Planned work: announce, list and remove.
#[derive(Debug, Subcommand)]
pub(super) enum MaintenanceCommand {
    /// Announce planned work on the page /status and in /v1/status, which show it within a minute
    Add {
        /// Start: an RFC 3339 time, for example 2026-12-01T02:00:00Z
        #[arg(long)]
        from: DateTime<Utc>,
        /// End: an RFC 3339 time
        #[arg(long)]
        to: DateTime<Utc>,
        /// Description for the readers of the status, 1 to 500 characters
        #[arg(long)]
        text: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List planned and past work, the latest first
    List(ListArgs),
    /// Remove planned or past work from the status
    Remove {
        /// Id of the work
        id: i64,
    },
}

/// Runs a maintenance command.
pub(super) async fn run_maintenance(
    command: MaintenanceCommand,
    database: &DatabaseSettings,
) -> anyhow::Result<()> {
    let client = connect_accounts(database).await?;
    match command {
        MaintenanceCommand::Add { from, to, text, json } => {
            let text = text.trim();
            ensure!(from < to, "cannot announce the work: --to is not after --from");
            ensure!(
                (1..=MAX_LENGTH).contains(&text.chars().count()),
                "cannot announce the work: --text needs 1 to {MAX_LENGTH} characters"
            );
            let id: i64 = client.query_one(ADD, &[&from, &to, &text]).await?.try_get(0)?;
            let added = json!({ "id": id, "start": from, "end": to, "description": text });
            print_object(&added, json);
        }
        MaintenanceCommand::List(output) => {
            let list = RowList {
                nouns: ["planned work", "planned works"],
                columns: &[
                    ("id", "id"),
                    ("start", "start (UTC)"),
                    ("end", "end (UTC)"),
                    ("state", "state"),
                    ("description", "description"),
                ],
                empty: "no planned work: api maintenance add announces some",
            };
            print_rows(&find_maintenance(&client, DateTime::UNIX_EPOCH, MAX_LISTED).await?, &list, &output);
        }
        MaintenanceCommand::Remove { id } => {
            let removed = client.execute(REMOVE, &[&id]).await?;
            ensure!(removed == 1, "cannot remove the work: no work has the id {id}");
        }
    }
    Ok(())
}
