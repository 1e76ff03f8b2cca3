//! `api account sessions`: list and end of an account's sessions.

use clap::Args;
use serde_json::json;
use tokio_postgres::Client;

use super::report;
use crate::account::{Party, accounts, email, sessions};

/// The sessions of an account's holder in the dashboard.
#[derive(Debug, Args)]
pub struct Sessions {
    /// Email address of the account
    email: String,
    /// End this one
    #[arg(long, value_name = "ID", conflicts_with = "end_all")]
    end: Option<i64>,
    /// End all of them
    #[arg(long)]
    end_all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Ends the selected sessions, then lists the remaining ones.
pub(super) async fn run(client: &mut Client, it: &Sessions) -> anyhow::Result<()> {
    let email = email(&it.email)?;
    let party = Party::Operator(&email);
    if let Some(id) = it.end {
        sessions::end(client, party, id).await?;
    }
    if it.end_all {
        sessions::end_all(client, party).await?;
    }
    let account = accounts::show(client, &email).await?;
    let left = sessions::list(client, account.id).await?;
    let rows: Vec<_> = left.iter().map(|session| json!(session)).collect();
    report::rows(&rows, &["id", "address", "created_at", "seen_at", "agent"], it.json);
    Ok(())
}
