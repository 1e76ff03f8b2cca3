//! `api key …`

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use schema::db::DatabaseSettings;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio_postgres::{Client, Row};

use super::accounts::instant;
use super::{AccountError, email, owner, report};
use crate::access::Secret;

const CREATE: &str = include_str!("../../queries/accounts/create_key.sql");
const LIST: &str = include_str!("../../queries/accounts/list_keys.sql");
const DELETE: &str = include_str!("../../queries/accounts/delete_key.sql");
const LOCK: &str = include_str!("../../queries/accounts/lock_account.sql");
/// Keys an account may have that are neither deleted nor expired.
const MOST_ACTIVE: i64 = 10;

/// Keys: what requests are signed with.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Makes a key and prints its secret, once
    Create(Create),
    /// Lists an account's keys, without their secrets
    List(Listing),
    /// Deletes a key, from the next request on
    Delete(Delete),
}

/// A new key.
#[derive(Debug, Args)]
pub struct Create {
    /// Email address of the account
    email: String,
    /// Name of the key, 1 to 64 characters
    #[arg(long)]
    name: String,
    /// Last day of the key (to its end, UTC), or an instant; without it the key does not expire
    #[arg(long, value_parser = instant)]
    expires: Option<DateTime<Utc>>,
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

/// Runs a key command.
pub async fn run_key(command: KeyCommand, database: &DatabaseSettings) -> anyhow::Result<()> {
    let mut client = owner(database).await?;
    match command {
        KeyCommand::Create(it) => create(&mut client, &it).await,
        KeyCommand::List(it) => list(&client, &it).await,
        KeyCommand::Delete(it) => delete(&client, &it).await,
    }
}

async fn create(client: &mut Client, it: &Create) -> anyhow::Result<()> {
    let (email, name) = (email(&it.email)?, it.name.trim());
    if !(1..=64).contains(&name.chars().count()) {
        return Err(AccountError::Refused("a key's name has 1 to 64 characters".to_owned()).into());
    }
    let transaction = client.transaction().await?;
    // The account's row is locked, so that two creations cannot both be the tenth.
    let account =
        transaction.query_opt(LOCK, &[&email]).await?.ok_or(AccountError::NoAccount(email.clone()))?;
    if account.try_get::<_, i64>("active_keys")? >= MOST_ACTIVE {
        return Err(AccountError::Refused(format!(
            "{email} has {MOST_ACTIVE} active keys: delete one first"
        ))
        .into());
    }
    let secret = Secret::draw();
    let id: i64 = account.try_get("id")?;
    let row = transaction
        .query_one(CREATE, &[&id, &&secret.hash[..], &name, &secret.last_four, &it.expires])
        .await?;
    transaction.commit().await?;
    let mut key = object(&row)?;
    key["account"] = email.into();
    key["secret"] = secret.text.expose_secret().into();
    report::object(&key, it.json);
    if it.expires.is_some_and(|expires| expires <= Utc::now()) {
        tracing::warn!("the key has expired already");
    }
    if !it.json {
        tracing::info!("the secret cannot be shown again");
    }
    Ok(())
}

async fn list(client: &Client, it: &Listing) -> anyhow::Result<()> {
    let email = email(&it.email)?;
    client.query_opt(LOCK, &[&email]).await?.ok_or(AccountError::NoAccount(email.clone()))?;
    let rows = client.query(LIST, &[&email]).await?;
    let rows = rows.iter().map(object).collect::<Result<Vec<_>, _>>()?;
    report::rows(&rows, &["id", "name", "last_four", "status", "created_at", "expires_at"], it.json);
    Ok(())
}

async fn delete(client: &Client, it: &Delete) -> anyhow::Result<()> {
    let email = email(&it.email)?;
    match client.execute(DELETE, &[&email, &it.key]).await? {
        0 => Err(AccountError::Refused(format!("{email} has no active key {}", it.key)).into()),
        count => {
            report::object(&json!({ "account": email, "key": it.key, "deleted": count }), it.json);
            Ok(())
        }
    }
}

fn object(row: &Row) -> Result<Value, tokio_postgres::Error> {
    Ok(json!({
        "id": row.try_get::<_, i64>("id")?,
        "name": row.try_get::<_, String>("name")?,
        "last_four": row.try_get::<_, String>("last_four")?,
        "status": row.try_get::<_, String>("status")?,
        "created_at": row.try_get::<_, DateTime<Utc>>("created_at")?,
        "expires_at": row.try_get::<_, Option<DateTime<Utc>>>("expires_at")?,
    }))
}
