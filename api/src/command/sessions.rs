//! `api account sessions`: lists or ends the sessions of an account.

use clap::Args;
use telemetry::table::ListArgs;
use tokio_postgres::Client;

use super::output::{self, RowList};
use crate::account::{AccountActor, accounts, parse_email, sessions};
use crate::auth::ids::SessionId;

/// Arguments of `api account sessions`.
#[derive(Debug, Args)]
pub(super) struct SessionArguments {
    /// Email address of the account
    email: String,
    /// Id of a session to end
    #[arg(long, value_name = "ID", conflicts_with = "end_all")]
    end: Option<SessionId>,
    /// End all sessions
    #[arg(long)]
    end_all: bool,
    #[command(flatten)]
    output: ListArgs,
}

/// Ends the selected sessions, then lists the remaining ones.
pub(super) async fn run_sessions(client: &mut Client, arguments: &SessionArguments) -> anyhow::Result<()> {
    let email = parse_email(&arguments.email)?;
    let actor = AccountActor::Operator(&email);
    if let Some(id) = arguments.end {
        sessions::end_session(client, actor, id).await?;
    }
    if arguments.end_all {
        sessions::end_all_sessions(client, actor).await?;
    }
    let account = accounts::find_account(client, &email).await?;
    let left = sessions::list_sessions(client, account.id).await?;
    let list = RowList {
        nouns: ["session", "sessions"],
        columns: &[
            ("id", "id"),
            ("address", "address"),
            ("created_at", "begun (UTC)"),
            ("seen_at", "seen (UTC)"),
            ("agent", "browser"),
        ],
        empty: "no sessions: the holder is not signed in to the dashboard",
    };
    output::print_rows(&left, &list, &arguments.output);
    Ok(())
}
