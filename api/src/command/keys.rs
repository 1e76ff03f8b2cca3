//! `api key …`: administration of API keys.

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use secrecy::ExposeSecret;
use serde_json::json;
use store::db::DatabaseSettings;
use telemetry::table::ListArgs;
use tokio_postgres::Client;

use super::instant_argument::parse_instant;
use super::output::{self, RowList};
use super::owner_connection::connect_as_owner;
use crate::account::keys::{self, CreatedKey, NewKey, Overlap};
use crate::account::{AccountActor, accounts, parse_email};

/// API keys: create, list, replace and delete.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Create a key and print its secret, which cannot be shown again
    Create(CreateKey),
    /// List an account's keys, without their secrets
    List(ListKeys),
    /// Replace the secret of a key and print the new secret, which cannot be shown again
    ReRoll(ReRollKey),
    /// Delete a key; the next request with it is refused
    Delete(DeleteKey),
}

/// Arguments of `api key create`.
#[derive(Debug, Args)]
pub struct CreateKey {
    /// Email address of the account
    email: String,
    /// Name of the key, 1 to 64 characters, unique among the active keys of the account
    #[arg(long)]
    name: String,
    /// Last day of the key (inclusive, UTC), or an RFC 3339 time. Default: the key does not expire
    #[arg(long, value_parser = parse_instant)]
    expires: Option<DateTime<Utc>>,
    /// Limit of this key in calls per minute, which is also its burst. The limit of the account applies too
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..))]
    rate_per_minute: Option<i32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `api key list`.
#[derive(Debug, Args)]
pub struct ListKeys {
    /// Email address of the account
    email: String,
    #[command(flatten)]
    output: ListArgs,
}

/// Arguments of `api key delete`.
#[derive(Debug, Args)]
pub struct DeleteKey {
    /// Email address of the account
    email: String,
    /// Id or name of the key
    key: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `api key re-roll`.
#[derive(Debug, Args)]
pub struct ReRollKey {
    /// Email address of the account
    email: String,
    /// Id or name of the key
    key: String,
    /// Time for which the old secret still works: 0, 1h, 24h or 7d. It never works longer than its own expiry
    #[arg(long, default_value = "0")]
    overlap: Overlap,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs a key command.
pub async fn run_key(command: KeyCommand, database: &DatabaseSettings) -> anyhow::Result<()> {
    let mut client = connect_as_owner(database).await?;
    match command {
        KeyCommand::Create(arguments) => create(&mut client, &arguments).await,
        KeyCommand::List(arguments) => list(&client, &arguments).await,
        KeyCommand::ReRoll(arguments) => re_roll(&mut client, &arguments).await,
        KeyCommand::Delete(arguments) => delete(&mut client, &arguments).await,
    }
}

async fn create(client: &mut Client, arguments: &CreateKey) -> anyhow::Result<()> {
    let email = parse_email(&arguments.email)?;
    let new = NewKey {
        name: &arguments.name,
        expires_at: arguments.expires,
        rate_per_minute: arguments.rate_per_minute,
    };
    let created = keys::create_key(client, AccountActor::Operator(&email), &new).await?;
    show_once(&email, &created, arguments.json);
    Ok(())
}

async fn re_roll(client: &mut Client, arguments: &ReRollKey) -> anyhow::Result<()> {
    let email = parse_email(&arguments.email)?;
    let created =
        keys::replace_key(client, AccountActor::Operator(&email), &arguments.key, arguments.overlap).await?;
    show_once(&email, &created, arguments.json);
    Ok(())
}

fn show_once(email: &str, created: &CreatedKey, json: bool) {
    let mut key = json!(created.key);
    key["secret"] = created.secret.expose_secret().into();
    key["account"] = email.into();
    output::print_object(&key, json);
    if !json {
        tracing::info!("save the secret now: it cannot be shown again");
    }
}

async fn list(client: &Client, arguments: &ListKeys) -> anyhow::Result<()> {
    let account = accounts::find_account(client, &parse_email(&arguments.email)?).await?;
    let keys = keys::list_keys(client, account.id).await?;
    let rows: Vec<_> = keys.iter().map(|key| json!(key)).collect();
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
    output::print_rows(&rows, &list, &arguments.output);
    Ok(())
}

async fn delete(client: &mut Client, arguments: &DeleteKey) -> anyhow::Result<()> {
    let email = parse_email(&arguments.email)?;
    let (id, name) = keys::delete_key(client, AccountActor::Operator(&email), &arguments.key).await?;
    output::print_object(
        &json!({ "account": email, "id": id, "name": name, "deleted": true }),
        arguments.json,
    );
    Ok(())
}
