//! `api key …`: administration of API keys.

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use secrecy::ExposeSecret;
use serde_json::json;
use store::db::DatabaseSettings;
use tokio_postgres::Client;

use super::instant::instant;
use super::owner::owner;
use super::report;
use crate::account::keys::{self, Drawn, NewKey, Overlap};
use crate::account::{Party, accounts, email};

/// Keys: what requests are signed with.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Makes a key and prints its secret, once
    Create(Create),
    /// Lists an account's keys, without their secrets
    List(Listing),
    /// Gives a key a new secret and prints it, once
    ReRoll(ReRoll),
    /// Deletes a key, from the next request on
    Delete(Delete),
}

/// A new key.
#[derive(Debug, Args)]
pub struct Create {
    /// Email address of the account
    email: String,
    /// Name of the key, 1 to 64 characters; no other active key of the account may have it
    #[arg(long)]
    name: String,
    /// Last day of the key (to its end, UTC), or an instant; without it the key does not expire
    #[arg(long, value_parser = instant)]
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
pub struct Listing {
    /// Email address of the account
    email: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A key to delete.
#[derive(Debug, Args)]
pub struct Delete {
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
pub struct ReRoll {
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
    let mut client = owner(database).await?;
    match command {
        KeyCommand::Create(it) => create(&mut client, &it).await,
        KeyCommand::List(it) => list(&client, &it).await,
        KeyCommand::ReRoll(it) => re_roll(&mut client, &it).await,
        KeyCommand::Delete(it) => delete(&mut client, &it).await,
    }
}

async fn create(client: &mut Client, it: &Create) -> anyhow::Result<()> {
    let email = email(&it.email)?;
    let new = NewKey { name: &it.name, expires_at: it.expires, rate_per_minute: it.rate_per_minute };
    let drawn = keys::create(client, Party::Operator(&email), &new).await?;
    show_once(&email, &drawn, it.json);
    Ok(())
}

async fn re_roll(client: &mut Client, it: &ReRoll) -> anyhow::Result<()> {
    let email = email(&it.email)?;
    let drawn = keys::re_roll(client, Party::Operator(&email), &it.key, it.overlap).await?;
    show_once(&email, &drawn, it.json);
    Ok(())
}

fn show_once(email: &str, drawn: &Drawn, json: bool) {
    let mut key = json!(drawn.key);
    key["secret"] = drawn.secret.expose_secret().into();
    key["account"] = email.into();
    report::object(&key, json);
    if !json {
        tracing::info!("the secret cannot be shown again");
    }
}

async fn list(client: &Client, it: &Listing) -> anyhow::Result<()> {
    let account = accounts::show(client, &email(&it.email)?).await?;
    let keys = keys::list(client, account.id).await?;
    let rows: Vec<_> = keys.iter().map(|key| json!(key)).collect();
    let columns =
        ["id", "name", "last_four", "status", "created_at", "expires_at", "rate_per_minute", "last_used"];
    report::rows(&rows, &columns, it.json);
    Ok(())
}

async fn delete(client: &mut Client, it: &Delete) -> anyhow::Result<()> {
    let email = email(&it.email)?;
    let (id, name) = keys::delete(client, Party::Operator(&email), &it.key).await?;
    report::object(&json!({ "account": email, "id": id, "name": name, "deleted": true }), it.json);
    Ok(())
}
