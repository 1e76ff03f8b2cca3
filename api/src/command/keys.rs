//! `api key …`: administration of API keys.

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use secrecy::ExposeSecret;
use serde_json::json;
use store::db::DatabaseSettings;
use tokio_postgres::Client;

use super::instant_argument::parse_instant;
use super::owner_connection::connect_as_owner;
use super::output;
use crate::account::keys::{self, CreatedKey, NewKey, Overlap};
use crate::account::{AccountActor, accounts, parse_email};

/// Keys: what requests are signed with.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Makes a key and prints its secret, once
    Create(CreateKey),
    /// Lists an account's keys, without their secrets
    List(ListKeys),
    /// Gives a key a new secret and prints it, once
    ReRoll(ReplaceKey),
    /// Deletes a key, from the next request on
    Delete(DeleteKey),
}

/// A new key.
#[derive(Debug, Args)]
pub struct CreateKey {
    /// Email address of the account
    email: String,
    /// Name of the key, 1 to 64 characters; no other active key of the account may have it
    #[arg(long)]
    name: String,
    /// Last day of the key (to its end, UTC), or an instant; without it the key does not expire
    #[arg(long, value_parser = parse_instant)]
    expires: Option<DateTime<Utc>>,
    /// Calls a minute, and at once, of this key alone; it has its share of the account's as well
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..))]
    rate_per_minute: Option<i32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The keys of an account.
#[derive(Debug, Args)]
pub struct ListKeys {
    /// Email address of the account
    email: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A key to delete.
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

/// A key to replace.
#[derive(Debug, Args)]
pub struct ReplaceKey {
    /// Email address of the account
    email: String,
    /// Id or name of the key
    key: String,
    /// How long the old secret goes on to work: 0, 1h, 24h or 7d, never longer than it would have
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
    let new = NewKey { name: &arguments.name, expires_at: arguments.expires, rate_per_minute: arguments.rate_per_minute };
    let drawn = keys::create_key(client, AccountActor::Operator(&email), &new).await?;
    show_once(&email, &drawn, arguments.json);
    Ok(())
}

async fn re_roll(client: &mut Client, arguments: &ReplaceKey) -> anyhow::Result<()> {
    let email = parse_email(&arguments.email)?;
    let drawn = keys::replace_key(client, AccountActor::Operator(&email), &arguments.key, arguments.overlap).await?;
    show_once(&email, &drawn, arguments.json);
    Ok(())
}

fn show_once(email: &str, drawn: &CreatedKey, json: bool) {
    let mut key = json!(drawn.key);
    key["secret"] = drawn.secret.expose_secret().into();
    key["account"] = email.into();
    output::print_object(&key, json);
    if !json {
        tracing::info!("the secret cannot be shown again");
    }
}

async fn list(client: &Client, arguments: &ListKeys) -> anyhow::Result<()> {
    let account = accounts::find_account(client, &parse_email(&arguments.email)?).await?;
    let keys = keys::list_keys(client, account.id).await?;
    let rows: Vec<_> = keys.iter().map(|key| json!(key)).collect();
    let columns =
        ["id", "name", "last_four", "status", "created_at", "expires_at", "rate_per_minute", "last_used"];
    output::print_rows(&rows, &columns, arguments.json);
    Ok(())
}

async fn delete(client: &mut Client, arguments: &DeleteKey) -> anyhow::Result<()> {
    let email = parse_email(&arguments.email)?;
    let (id, name) = keys::delete_key(client, AccountActor::Operator(&email), &arguments.key).await?;
    output::print_object(&json!({ "account": email, "id": id, "name": name, "deleted": true }), arguments.json);
    Ok(())
}
