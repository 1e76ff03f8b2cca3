//! API keys: creation, replacement and deletion.

use chrono::{DateTime, Utc};
use market::text_enum;
use secrecy::SecretString;
use serde::Serialize;
use serde_json::json;
use store::{FromRow, sql_row};
use tokio_postgres::{Client, Error, Row, Transaction};
use unicode_normalization::UnicodeNormalization;

use super::actor::{AccountActor, LockedAccount};
use super::error::AccountError;
use super::key_name::{is_same_name, parse_key_name};
use crate::auth::GeneratedKey;
use crate::auth::ids::{AccountId, KeyId};

const CREATE: &str = include_str!("../../queries/accounts/create_key.sql");
const ONE: &str = include_str!("../../queries/accounts/find_key.sql");
const LIST: &str = include_str!("../../queries/accounts/list_keys.sql");
const DELETE: &str = include_str!("../../queries/accounts/delete_key.sql");
const FIND: &str = include_str!("../../queries/accounts/find_keys.sql");
const NAMES: &str = include_str!("../../queries/accounts/active_key_names.sql");
const REPLACEMENT: &str = include_str!("../../queries/accounts/find_replacement.sql");
const MADE: &str = include_str!("../../queries/accounts/keys_made.sql");
const EXPIRE: &str = include_str!("../../queries/accounts/expire_key.sql");
/// Maximum number of active keys of an account.
const MAX_ACTIVE_KEYS: i64 = 10;
/// Maximum number of keys that a holder may create within a day. It limits the number of stored rows.
const MAX_KEYS_PER_DAY: i64 = 100;

sql_row! {
    /// API key without its secret.
    #[derive(Debug, Clone, Serialize)]
    pub(crate) struct ApiKey {
        pub(crate) id: KeyId,
        pub(crate) name: String,
        /// Last four characters of the secret, by which a person recognizes the key.
        pub(crate) last_four: String,
        /// Status: `active`, `expired` or `deleted`.
        pub(crate) status: String,
        pub(crate) created_at: DateTime<Utc>,
        pub(crate) expires_at: Option<DateTime<Utc>>,
        pub(crate) rate_per_minute: Option<i32>,
        /// Time of the last call in the usage statistics; `None` without a call. A new call appears after a few
        /// seconds.
        pub(crate) last_used: Option<DateTime<Utc>>,
    }
}

/// New API key with its secret. The secret cannot be read again.
#[derive(Debug)]
pub(crate) struct CreatedKey {
    pub(crate) key: ApiKey,
    pub(crate) secret: SecretString,
}

/// Properties of a new key, without its secret.
#[derive(Debug)]
pub(crate) struct NewKey<'a> {
    /// Name of 1 to 64 characters. It must differ from the names of the account's other active keys.
    pub(crate) name: &'a str,
    pub(crate) expires_at: Option<DateTime<Utc>>,
    pub(crate) rate_per_minute: Option<i32>,
}

text_enum! {
    /// Time for which a replaced key still works.
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

pub(crate) async fn create_key(
    client: &mut Client,
    actor: AccountActor<'_>,
    new: &NewKey<'_>,
) -> Result<CreatedKey, AccountError> {
    let name = parse_key_name(new.name)?;
    if new.expires_at.is_some_and(|expires| expires <= Utc::now()) {
        return Err(refused("cannot create the key: its expiry is in the past"));
    }
    let transaction = client.transaction().await?;
    let account = actor.lock(&transaction).await?;
    refuse_full(&transaction, &account, "delete one first").await?;
    let is_same = |row: &Row| Ok::<_, Error>(is_same_name(row.try_get("name")?, &name));
    let names = transaction.query(NAMES, &[&account.id]).await?;
    if names.iter().map(is_same).collect::<Result<Vec<_>, _>>()?.contains(&true) {
        return Err(refused(format!(
            "cannot create the key: an active key is already named {name}; if its secret is lost, replace that key"
        )));
    }
    let created = insert_key(&transaction, &account, &NewKey { name: &name, ..*new }).await?;
    account.record_key(&transaction, "key.create", json!(created.key)).await?;
    transaction.commit().await?;
    Ok(created)
}

/// Replaces the secret of the active key with this id or name. The old secret expires at the end of the overlap.
pub(crate) async fn replace_key(
    client: &mut Client,
    actor: AccountActor<'_>,
    key: &str,
    overlap: Overlap,
) -> Result<CreatedKey, AccountError> {
    let transaction = client.transaction().await?;
    let account = actor.lock(&transaction).await?;
    account.lock_limiter(&transaction).await?;
    let old = find_active_key(&transaction, &account, key).await?;
    let (id, name): (KeyId, String) = (old.try_get("id")?, old.try_get("name")?);
    refuse_replaced(&transaction, &account, &name, id).await?;
    let new = NewKey {
        name: &name,
        expires_at: old.try_get("expires_at")?,
        rate_per_minute: old.try_get("rate_per_minute")?,
    };
    if overlap == Overlap::None {
        transaction.execute(DELETE, &[&id]).await?;
    } else {
        let otherwise = "delete one first, or replace the key without an overlap (--overlap 0)";
        refuse_full(&transaction, &account, otherwise).await?;
        transaction.execute(EXPIRE, &[&id, &overlap.hours()]).await?;
    }
    let created = insert_key(&transaction, &account, &new).await?;
    let mut details = json!(created.key);
    details["replaces"] = json!(id);
    details["overlap"] = overlap.as_str().into();
    account.record_key(&transaction, "key.re_roll", details).await?;
    transaction.commit().await?;
    Ok(created)
}

/// Deletes the active key with this id or name, from the next request on. Returns id and name of the key.
pub(crate) async fn delete_key(
    client: &mut Client,
    actor: AccountActor<'_>,
    key: &str,
) -> Result<(KeyId, String), AccountError> {
    let transaction = client.transaction().await?;
    let account = actor.lock(&transaction).await?;
    account.lock_limiter(&transaction).await?;
    let key = find_active_key(&transaction, &account, key).await?;
    let (id, name): (KeyId, String) = (key.try_get("id")?, key.try_get("name")?);
    transaction.execute(DELETE, &[&id]).await?;
    account.record_key(&transaction, "key.delete", json!({ "id": id, "name": name })).await?;
    transaction.commit().await?;
    Ok((id, name))
}

/// Finds the key with this id; `None` if it does not belong to the account.
pub(crate) async fn find_key(
    client: &Client,
    account_id: AccountId,
    key_id: KeyId,
) -> Result<Option<ApiKey>, AccountError> {
    let row = client.query_opt(ONE, &[&account_id, &key_id]).await?;
    Ok(row.as_ref().map(ApiKey::from_row).transpose()?)
}

/// Lists the keys of an account in order of creation, at most 200. Keys that were deleted more than 30 days ago are
/// left out.
pub(crate) async fn list_keys(client: &Client, account_id: AccountId) -> Result<Vec<ApiKey>, AccountError> {
    let rows = client.query(LIST, &[&account_id]).await?;
    Ok(rows.iter().map(ApiKey::from_row).collect::<Result<_, _>>()?)
}

fn refused(message: impl Into<String>) -> AccountError {
    AccountError::Refused(message.into())
}

async fn refuse_full(
    transaction: &Transaction<'_>,
    account: &LockedAccount,
    otherwise: &str,
) -> Result<(), AccountError> {
    if account.count_active_keys(transaction).await? < MAX_ACTIVE_KEYS {
        return Ok(());
    }
    Err(refused(format!("an account can have at most {MAX_ACTIVE_KEYS} active keys: {otherwise}")))
}

/// Fails if the key was already replaced. Otherwise a repeated request would create a second replacement, which would
/// expire together with the old key.
async fn refuse_replaced(
    transaction: &Transaction<'_>,
    account: &LockedAccount,
    name: &str,
    key_id: KeyId,
) -> Result<(), AccountError> {
    let Some(newer) = transaction.query_opt(REPLACEMENT, &[&account.id, &name, &key_id]).await? else {
        return Ok(());
    };
    let last_four: &str = newer.try_get("last_four")?;
    Err(refused(format!(
        "the key was replaced already, by …{last_four}; if the secret of the new key is lost, replace the new key"
    )))
}

/// Creates a random secret and stores its hash.
async fn insert_key(
    transaction: &Transaction<'_>,
    account: &LockedAccount,
    new: &NewKey<'_>,
) -> Result<CreatedKey, AccountError> {
    if account.is_own() {
        let made: i64 = transaction.query_one(MADE, &[&account.id]).await?.try_get("made")?;
        if made >= MAX_KEYS_PER_DAY {
            return Err(refused(format!(
                "cannot create the key: at most {MAX_KEYS_PER_DAY} keys can be created per day; try again tomorrow"
            )));
        }
    }
    let secret = GeneratedKey::generate();
    let hash = &secret.hash[..];
    let row = transaction
        .query_one(
            CREATE,
            &[&account.id, &hash, &new.name, &secret.last_four, &new.expires_at, &new.rate_per_minute],
        )
        .await?;
    Ok(CreatedKey { key: ApiKey::from_row(&row)?, secret: secret.text })
}

/// Finds the active key with this id or name. Fails if several keys have this name and none has this id.
async fn find_active_key(
    transaction: &Transaction<'_>,
    account: &LockedAccount,
    key: &str,
) -> Result<Row, AccountError> {
    let normalized: String = key.nfc().collect();
    let mut found = transaction.query(FIND, &[&account.id, &key, &normalized]).await?;
    let by_id = found.first().map(|row| row.try_get::<_, KeyId>("id")).transpose()?;
    match found.len() {
        0 => Err(refused(format!("there is no active key {key}"))),
        1 => Ok(found.remove(0)),
        _ if by_id.is_some_and(|id| id.to_string() == key) => Ok(found.remove(0)),
        count => Err(refused(format!("{count} active keys are named {key}: use the id instead of the name"))),
    }
}
