//! `api key …`: administration of API keys.

use chrono::{DateTime, Utc};
use clap::Subcommand;
use secrecy::ExposeSecret;
use serde_json::json;
use store::db::{DatabaseSettings, connect_accounts};
use telemetry::table::ListArgs;

use super::{RowList, parse_instant, print_object, print_rows};
use crate::account::keys::{self, ApiKey, CreatedKey, KeyKind, NewKey, Overlap};
use crate::account::{AccountActor, accounts, parse_email};

/// API keys: create, list, replace and delete.
#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Create a key and print its secret, which cannot be shown again
    Create {
        /// Email address of the account
        email: String,
        /// Name of the key, 1 to 64 characters, unique among the active keys of the account
        #[arg(long)]
        name: String,
        /// Expiry of the key: its last day (inclusive, UTC), or an RFC 3339 time. Default: the key does not expire
        #[arg(long, value_parser = parse_instant)]
        expires: Option<DateTime<Utc>>,
        /// Maximum calls per minute with this key, and also its maximum burst. The limit of the account applies too
        #[arg(long, value_parser = clap::value_parser!(i32).range(1..))]
        rate_per_minute: Option<i32>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List an account's keys, without their secrets
    List {
        /// Email address of the account
        email: String,
        #[command(flatten)]
        output: ListArgs,
    },
    /// Replace the secret of a key and print the new secret, which cannot be shown again
    ReRoll {
        /// Email address of the account
        email: String,
        /// Id or name of the key
        key: String,
        /// Time for which the old secret still works: 0, 1h, 24h or 7d. If the old secret expires earlier, it works
        /// only until it expires
        #[arg(long, default_value = "0")]
        overlap: Overlap,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete a key; the next request with it is refused
    Delete {
        /// Email address of the account
        email: String,
        /// Id or name of the key
        key: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Runs a key command.
pub(super) async fn run_key(command: KeyCommand, database: &DatabaseSettings) -> anyhow::Result<()> {
    let client = &mut connect_accounts(database).await?;
    match command {
        KeyCommand::Create { email, name, expires, rate_per_minute, json } => {
            let email = parse_email(&email)?;
            let new = NewKey { name: &name, kind: KeyKind::Holder, expires_at: expires, rate_per_minute };
            let created = keys::create_key(client, AccountActor::Operator(&email), &new).await?;
            show_once(&email, &created, json);
        }
        KeyCommand::List { email, output } => {
            let account = accounts::find_account(client, &parse_email(&email)?).await?;
            list(&keys::list_keys(client, account.id).await?, &output);
        }
        KeyCommand::ReRoll { email, key, overlap, json } => {
            let email = parse_email(&email)?;
            let created = keys::replace_key(client, AccountActor::Operator(&email), &key, overlap).await?;
            show_once(&email, &created, json);
        }
        KeyCommand::Delete { email, key, json } => {
            let email = parse_email(&email)?;
            let (id, name) = keys::delete_key(client, AccountActor::Operator(&email), &key).await?;
            let deleted = json!({ "account": email, "id": id, "name": name, "deleted": true });
            print_object(&deleted, json);
        }
    }
    Ok(())
}

fn show_once(email: &str, created: &CreatedKey, json: bool) {
    let mut key = json!(created.key);
    key["secret"] = created.secret.expose_secret().into();
    key["account"] = email.into();
    print_object(&key, json);
    if !json {
        tracing::info!("save the secret now: it cannot be shown again");
    }
}

fn list(keys: &[ApiKey], output: &ListArgs) {
    let list = RowList {
        nouns: ["key", "keys"],
        columns: &[
            ("id", "id"),
            ("name", "name"),
            ("last_four", "ends in"),
            ("status", "status"),
            ("expires_at", "expires (UTC)"),
            ("rate_per_minute", "per minute"),
            ("last_used", "last used (UTC)"),
        ],
        empty: "no keys: api key create EMAIL --name NAME creates one",
    };
    print_rows(keys, &list, output);
}
