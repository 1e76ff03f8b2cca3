//! `api key …`

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use market::text_enum;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use store::db::DatabaseSettings;
use tokio_postgres::{Client, Row, Transaction};

use super::accounts::{Locked, instant, lock};
use super::audit::record;
use super::email::email;
use super::error::AccountError;
use super::owner::owner;
use super::report;
use crate::access::Secret;

const CREATE: &str = include_str!("../../queries/accounts/create_key.sql");
const LIST: &str = include_str!("../../queries/accounts/list_keys.sql");
const DELETE: &str = include_str!("../../queries/accounts/delete_key.sql");
const FIND: &str = include_str!("../../queries/accounts/find_keys.sql");
const IS_NAMED: &str = include_str!("../../queries/accounts/is_key_named.sql");
const EXPIRE: &str = include_str!("../../queries/accounts/expire_key.sql");
/// Keys an account may have that are neither deleted nor expired.
const MOST_ACTIVE: i64 = 10;

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

text_enum! {
    /// How long a replaced key goes on to work.
    pub enum Overlap { None = "0", Hour = "1h", Day = "24h", Week = "7d" }
}

impl Overlap {
    fn hours(self) -> i32 {
        match self {
            Self::None => 0,
            Self::Hour => 1,
            Self::Day => 24,
            Self::Week => 168,
        }
    }
}

/// What a new key is made of, but for its secret.
struct Plan<'a> {
    name: &'a str,
    expires_at: Option<DateTime<Utc>>,
    rate_per_minute: Option<i32>,
}

/// Runs a key command.
pub async fn run_key(command: KeyCommand, database: &DatabaseSettings) -> anyhow::Result<()> {
    let mut client = owner(database).await?;
    match command {
        KeyCommand::Create(it) => create(&mut client, &it).await,
        KeyCommand::List(it) => list(&mut client, &it).await,
        KeyCommand::ReRoll(it) => re_roll(&mut client, &it).await,
        KeyCommand::Delete(it) => delete(&mut client, &it).await,
    }
}

async fn create(client: &mut Client, it: &Create) -> anyhow::Result<()> {
    let (email, name) = (email(&it.email)?, it.name.trim());
    if !(1..=64).contains(&name.chars().count()) {
        return Err(AccountError::Refused("a key's name has 1 to 64 characters".to_owned()).into());
    }
    if it.expires.is_some_and(|expires| expires <= Utc::now()) {
        return Err(AccountError::Refused("the key would have expired already".to_owned()).into());
    }
    let transaction = client.transaction().await?;
    let account = lock(&transaction, &email).await?;
    account_has_room(&account, &email, "delete one first")?;
    if transaction.query_one(IS_NAMED, &[&account.id, &name]).await?.try_get("named")? {
        return Err(AccountError::Refused(format!("{email} has an active key named {name} already")).into());
    }
    let plan = Plan { name, expires_at: it.expires, rate_per_minute: it.rate_per_minute };
    let key = insert(&transaction, &account, &plan).await?;
    record(&transaction, account.id, "key.create", without_secret(&key)).await?;
    transaction.commit().await?;
    show_once(&email, key, it.json);
    Ok(())
}

/// Gives a key a new secret; the old one ends with the overlap.
async fn re_roll(client: &mut Client, it: &ReRoll) -> anyhow::Result<()> {
    let email = email(&it.email)?;
    let transaction = client.transaction().await?;
    let account = lock(&transaction, &email).await?;
    let old = find(&transaction, &account, &email, &it.key).await?;
    let (id, name): (i64, String) = (old.try_get("id")?, old.try_get("name")?);
    let plan = Plan {
        name: &name,
        expires_at: old.try_get("expires_at")?,
        rate_per_minute: old.try_get("rate_per_minute")?,
    };
    if it.overlap == Overlap::None {
        transaction.execute(DELETE, &[&id]).await?;
    } else {
        account_has_room(&account, &email, "delete one first or use --overlap 0")?;
        transaction.execute(EXPIRE, &[&id, &it.overlap.hours()]).await?;
    }
    let key = insert(&transaction, &account, &plan).await?;
    let mut details = without_secret(&key);
    details["replaces"] = id.into();
    details["overlap"] = it.overlap.as_str().into();
    record(&transaction, account.id, "key.re_roll", details).await?;
    transaction.commit().await?;
    show_once(&email, key, it.json);
    Ok(())
}

fn account_has_room(account: &Locked, email: &str, otherwise: &str) -> Result<(), AccountError> {
    if account.active_keys < MOST_ACTIVE {
        return Ok(());
    }
    Err(AccountError::Refused(format!("{email} has {MOST_ACTIVE} active keys: {otherwise}")))
}

/// Draws a secret and stores its hash; gives the key as it is shown this once.
async fn insert(transaction: &Transaction<'_>, account: &Locked, plan: &Plan<'_>) -> anyhow::Result<Value> {
    let secret = Secret::draw();
    let row = transaction
        .query_one(
            CREATE,
            &[
                &account.id,
                &&secret.hash[..],
                &plan.name,
                &secret.last_four,
                &plan.expires_at,
                &plan.rate_per_minute,
            ],
        )
        .await?;
    let mut key = object(&row)?;
    key["secret"] = secret.text.expose_secret().into();
    Ok(key)
}

fn without_secret(key: &Value) -> Value {
    let mut key = key.clone();
    key.as_object_mut().map(|key| key.remove("secret"));
    key
}

fn show_once(email: &str, mut key: Value, json: bool) {
    key["account"] = email.into();
    report::object(&key, json);
    if !json {
        tracing::info!("the secret cannot be shown again");
    }
}

async fn list(client: &mut Client, it: &Listing) -> anyhow::Result<()> {
    let email = email(&it.email)?;
    let transaction = client.transaction().await?;
    let account = lock(&transaction, &email).await?;
    let rows = transaction.query(LIST, &[&account.id]).await?;
    let rows = rows.iter().map(object).collect::<Result<Vec<_>, _>>()?;
    let columns = ["id", "name", "last_four", "status", "created_at", "expires_at", "rate_per_minute"];
    report::rows(&rows, &columns, it.json);
    Ok(())
}

async fn delete(client: &mut Client, it: &Delete) -> anyhow::Result<()> {
    let email = email(&it.email)?;
    let transaction = client.transaction().await?;
    let account = lock(&transaction, &email).await?;
    let key = find(&transaction, &account, &email, &it.key).await?;
    let (id, name): (i64, String) = (key.try_get("id")?, key.try_get("name")?);
    transaction.execute(DELETE, &[&id]).await?;
    record(&transaction, account.id, "key.delete", json!({ "id": id, "name": name })).await?;
    transaction.commit().await?;
    report::object(&json!({ "account": email, "id": id, "name": name, "deleted": true }), it.json);
    Ok(())
}

/// The one active key that an id or a name names.
async fn find(
    transaction: &Transaction<'_>,
    account: &Locked,
    email: &str,
    key: &str,
) -> anyhow::Result<Row> {
    let mut found = transaction.query(FIND, &[&account.id, &key]).await?;
    let by_id = found.first().map(|row| row.try_get::<_, i64>("id")).transpose()?;
    let refused = match found.len() {
        0 => format!("{email} has no active key {key}"),
        1 => return Ok(found.remove(0)),
        _ if by_id.is_some_and(|id| id.to_string() == key) => return Ok(found.remove(0)),
        count => format!("{email} has {count} active keys named {key}: give the id"),
    };
    Err(AccountError::Refused(refused).into())
}

fn object(row: &Row) -> Result<Value, tokio_postgres::Error> {
    Ok(json!({
        "id": row.try_get::<_, i64>("id")?,
        "name": row.try_get::<_, String>("name")?,
        "last_four": row.try_get::<_, String>("last_four")?,
        "status": row.try_get::<_, String>("status")?,
        "created_at": row.try_get::<_, DateTime<Utc>>("created_at")?,
        "expires_at": row.try_get::<_, Option<DateTime<Utc>>>("expires_at")?,
        "rate_per_minute": row.try_get::<_, Option<i32>>("rate_per_minute")?,
    }))
}
