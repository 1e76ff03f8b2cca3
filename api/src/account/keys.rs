//! API keys: creation, replacement and deletion.

use chrono::{DateTime, Utc};
use market::text_enum;
use secrecy::SecretString;
use serde::Serialize;
use serde_json::json;
use store::{FromRow, find_rows, sql_row};
use tokio_postgres::{Client, Error, Row};
use unicode_normalization::UnicodeNormalization;

use super::audit::{AccountActor, AccountError, LockedAccount, Result, find_row};
use super::names::{is_same_name, parse_name};
use crate::auth::{AccountId, GeneratedKey, KeyId};

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

text_enum! {
    /// Kind of an API key.
    pub enum KeyKind {
        /// Key that the holder or the operator made.
        Holder = "holder",
        /// Key of a session for the reference page. It ends with the session.
        ReferencePage = "reference_page",
    }
}

sql_row! {
    /// API key without its secret.
    #[derive(Debug, Clone, Serialize)]
    pub(crate) struct ApiKey {
        pub(crate) id: KeyId,
        pub(crate) name: String,
        pub(crate) kind: KeyKind,
        /// Last four characters of the secret, shown so that a person can recognize the key.
        pub(crate) last_four: String,
        /// Status: `active`, `expired` or `deleted`.
        pub(crate) status: String,
        pub(crate) created_at: DateTime<Utc>,
        pub(crate) expires_at: Option<DateTime<Utc>>,
        pub(crate) rate_per_minute: Option<i32>,
        /// Time of the key's last call, from the usage statistics; `None` without a call. The statistics lag by a few
        /// seconds.
        pub(crate) last_used: Option<DateTime<Utc>>,
    }
}

sql_row! {
    /// Active key that the caller wants to replace or delete.
    struct ActiveKey {
        id: KeyId,
        name: String,
        kind: KeyKind,
        expires_at: Option<DateTime<Utc>>,
        rate_per_minute: Option<i32>,
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
    /// Name of 1 to 64 characters. It must differ from the names of the account's other active keys of the same kind.
    pub(crate) name: &'a str,
    pub(crate) kind: KeyKind,
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
) -> Result<CreatedKey> {
    let name = parse_name("create the key", new.name)?;
    if new.expires_at.is_some_and(|expires| expires <= Utc::now()) {
        return Err(refused("cannot create the key: its expiry is in the past"));
    }
    let account = actor.begin(client).await?;
    refuse_full(&account, "delete one first").await?;
    let is_same = |row: &Row| Ok::<_, Error>(is_same_name(row.try_get("name")?, &name));
    let names = account.transaction.query(NAMES, &[&account.id, &new.kind]).await?;
    if names.iter().map(is_same).collect::<Result<Vec<_>, _>>()?.contains(&true) {
        return Err(refused(format!(
            "cannot create the key: an active key is already named {name}; if its secret is lost, replace that key"
        )));
    }
    let created = insert_key(&account, &NewKey { name: &name, ..*new }).await?;
    account.record_key("key.create", json!(created.key)).await?;
    account.commit().await?;
    Ok(created)
}

/// Creates a new key in place of the active key with this id or name. The new key has the same name, expiry and rate.
/// The old key still works for the time `overlap`.
pub(crate) async fn replace_key(
    client: &mut Client,
    actor: AccountActor<'_>,
    key: &str,
    overlap: Overlap,
) -> Result<CreatedKey> {
    let account = actor.begin(client).await?;
    let old = find_active_key(&account, key).await?;
    refuse_replaced(&account, &old).await?;
    if overlap == Overlap::None {
        account.transaction.execute(DELETE, &[&old.id]).await?;
    } else {
        let otherwise = "delete one first, or replace the key without an overlap (--overlap 0)";
        refuse_full(&account, otherwise).await?;
        account.transaction.execute(EXPIRE, &[&old.id, &overlap.hours()]).await?;
    }
    let ActiveKey { name, kind, expires_at, rate_per_minute, .. } = &old;
    let new = NewKey { name, kind: *kind, expires_at: *expires_at, rate_per_minute: *rate_per_minute };
    let created = insert_key(&account, &new).await?;
    let mut details = json!(created.key);
    details["replaces"] = json!(old.id);
    details["overlap"] = overlap.as_str().into();
    account.record_key("key.re_roll", details).await?;
    account.commit().await?;
    Ok(created)
}

/// Deletes the active key with this id or name. Returns id and name of the key. The deletion applies from the next
/// request on.
pub(crate) async fn delete_key(
    client: &mut Client,
    actor: AccountActor<'_>,
    key: &str,
) -> Result<(KeyId, String)> {
    let account = actor.begin(client).await?;
    let ActiveKey { id, name, .. } = find_active_key(&account, key).await?;
    account.transaction.execute(DELETE, &[&id]).await?;
    account.record_key("key.delete", json!({ "id": id, "name": name })).await?;
    account.commit().await?;
    Ok((id, name))
}

/// Finds the key with this id; `None` if it does not belong to the account.
pub(crate) async fn find_key(
    client: &Client,
    account_id: AccountId,
    key_id: KeyId,
) -> Result<Option<ApiKey>> {
    find_row(client, ONE, &[&account_id, &key_id]).await
}

/// Lists at most 200 keys of an account, in order of creation. If the account has more keys, the list prefers active
/// keys, and then newer keys. Keys that were deleted more than 30 days ago are left out.
pub(crate) async fn list_keys(client: &Client, account_id: AccountId) -> Result<Vec<ApiKey>> {
    Ok(find_rows(client, LIST, &[&account_id]).await?)
}

fn refused(message: impl Into<String>) -> AccountError {
    AccountError::Refused(message.into())
}

async fn refuse_full(account: &LockedAccount<'_>, otherwise: &str) -> Result<()> {
    if account.count_active_keys().await? < MAX_ACTIVE_KEYS {
        return Ok(());
    }
    Err(refused(format!("an account can have at most {MAX_ACTIVE_KEYS} active keys: {otherwise}")))
}

/// Fails if the key was already replaced, for example by an earlier attempt of the same request. The first replacement
/// set an early expiry on the old key. A second replacement would copy this expiry to its new key.
async fn refuse_replaced(account: &LockedAccount<'_>, key: &ActiveKey) -> Result<()> {
    let newer =
        account.transaction.query_opt(REPLACEMENT, &[&account.id, &key.name, &key.id, &key.kind]).await?;
    let Some(newer) = newer else { return Ok(()) };
    let last_four: &str = newer.try_get("last_four")?;
    Err(refused(format!(
        "the key was replaced already, by …{last_four}; if the secret of the new key is lost, replace the new key"
    )))
}

/// Creates a random secret and stores its hash.
async fn insert_key(account: &LockedAccount<'_>, new: &NewKey<'_>) -> Result<CreatedKey> {
    if account.is_own() {
        let made: i64 = account.transaction.query_one(MADE, &[&account.id]).await?.try_get("made")?;
        if made >= MAX_KEYS_PER_DAY {
            return Err(refused(format!(
                "cannot create the key: at most {MAX_KEYS_PER_DAY} keys can be created per day; try again tomorrow"
            )));
        }
    }
    let GeneratedKey { text, hash, last_four } = GeneratedKey::generate();
    let hash = &hash[..];
    let NewKey { name, kind, expires_at, rate_per_minute } = new;
    let row = account
        .transaction
        .query_one(CREATE, &[&account.id, &hash, name, &last_four, expires_at, rate_per_minute, kind])
        .await?;
    Ok(CreatedKey { key: ApiKey::from_row(&row)?, secret: text })
}

/// Finds the active key with the id `key`, or else with the name `key`. Fails if several active keys have this name.
async fn find_active_key(account: &LockedAccount<'_>, key: &str) -> Result<ActiveKey> {
    let normalized: String = key.nfc().collect();
    let mut found: Vec<ActiveKey> =
        find_rows(&account.transaction, FIND, &[&account.id, &key, &normalized]).await?;
    let is_id = found.first().is_some_and(|first| first.id.to_string() == key);
    match found.len() {
        0 => Err(refused(format!("the account has no active key {key}"))),
        count if count > 1 && !is_id => {
            Err(refused(format!("{count} active keys are named {key}: use the id instead of the name")))
        }
        _ => Ok(found.remove(0)),
    }
}
