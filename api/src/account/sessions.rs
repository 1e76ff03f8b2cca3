//! Browser sessions of account holders, their known devices, and the revocation of both and of one-time links.
//!
//! Invariants: the database stores only a hash of a secret. A session ends after 30 idle minutes or after 12 hours.
//! Sign-ins from known devices are served first, but still need the password. A new password revokes sessions, links and
//! devices, and so does disabling the account. A new email address revokes the links.

use chrono::{DateTime, Utc};
use rand::RngExt;
use secrecy::SecretString;
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use store::{find_rows, sql_row};
use tokio_postgres::Client;

use super::audit::{AccountActor, AccountError, LockedAccount, Result, find_row};
use crate::auth::client_address::ClientNetwork;
use crate::auth::{AccountId, SessionId};

const BEGIN: &str = include_str!("../../queries/accounts/begin_session.sql");
const PRUNE: &str = include_str!("../../queries/accounts/prune_sessions.sql");
const FIND: &str = include_str!("../../queries/accounts/find_session.sql");
const LIST: &str = include_str!("../../queries/accounts/list_sessions.sql");
const END: &str = include_str!("../../queries/accounts/end_session.sql");
const END_OF_COOKIE: &str = include_str!("../../queries/accounts/end_session_of_cookie.sql");
/// Maximum number of sessions of an account. When it is reached, a new session replaces the oldest session.
const MAX_SESSIONS: i64 = 20;
/// Maximum stored length of a user agent, in characters.
const AGENT: usize = 200;

/// Client that starts a session.
#[derive(Debug, Clone)]
pub(crate) struct SessionOrigin {
    pub(crate) address: String,
    /// User agent of the browser.
    pub(crate) agent: String,
    pub(crate) devices: ClientDevices,
}

/// Cookies of a new session.
#[derive(Debug)]
pub(crate) struct SessionCookies {
    /// Secret of the session.
    pub(crate) session: SecretString,
    /// Secret of the device cookie. At a later sign-in, it identifies this browser as a known device.
    pub(crate) device: SecretString,
}

impl SessionCookies {
    /// Random cookies that belong to no session. They are sent after a sign-up with the email address of an existing
    /// account. The response then does not reveal that the account exists.
    pub(crate) fn without_session() -> Self {
        Self { session: Token::generate().text, device: Token::generate().text }
    }
}

sql_row! {
    /// Active browser session, as found by the session cookie of a request.
    #[derive(Debug, Clone)]
    pub(crate) struct BrowserSession {
        pub(crate) id: SessionId,
        pub(crate) account_id: AccountId,
        pub(crate) email: String,
    }
}

sql_row! {
    /// Session in the list of an account's sessions.
    #[derive(Debug, Clone, Serialize)]
    pub(crate) struct SessionSummary {
        pub(crate) id: SessionId,
        pub(crate) address: String,
        pub(crate) agent: String,
        pub(crate) created_at: DateTime<Utc>,
        pub(crate) seen_at: DateTime<Utc>,
    }
}

/// Starts a session in the caller's transaction, and stores the client's browser and network as known devices. Returns
/// the values of the session cookie and the device cookie.
pub(crate) async fn begin_session(
    account: &LockedAccount<'_>,
    origin: &SessionOrigin,
) -> Result<SessionCookies> {
    let (token, device) = (Token::generate(), Token::generate());
    let agent: String = origin.agent.chars().filter(|c| !c.is_control()).take(AGENT).collect();
    let transaction = &account.transaction;
    transaction.execute(BEGIN, &[&&token.hash[..], &account.id, &origin.address, &agent]).await?;
    transaction.execute(PRUNE, &[&account.id, &MAX_SESSIONS]).await?;
    account.record_session("session.begin", json!({ "address": origin.address })).await?;
    remember_devices(account, &device.hash, &origin.devices).await?;
    Ok(SessionCookies { session: token.text, device: device.text })
}

/// Finds the active session of a cookie value; `None` without an active session.
pub(crate) async fn find_session(client: &Client, cookie: &str) -> Result<Option<BrowserSession>> {
    find_row(client, FIND, &[&&Token::hash(cookie)[..]]).await
}

/// Ends the session with this cookie value. Does nothing without such a session.
pub(crate) async fn end_session_of_cookie(client: &mut Client, cookie: &str) -> Result<()> {
    let transaction = client.transaction().await?;
    let row = transaction.query_opt(END_OF_COOKIE, &[&&Token::hash(cookie)[..]]).await?;
    let Some(row) = row else { return Ok(()) };
    let account = AccountActor::Holder(row.try_get("account_id")?).lock(transaction).await?;
    account.record_session("session.end", json!({})).await?;
    account.commit().await
}

/// Lists the active sessions of an account, newest first.
pub(crate) async fn list_sessions(client: &Client, account_id: AccountId) -> Result<Vec<SessionSummary>> {
    Ok(find_rows(client, LIST, &[&account_id]).await?)
}

pub(crate) async fn end_session(
    client: &mut Client,
    actor: AccountActor<'_>,
    session_id: SessionId,
) -> Result<()> {
    let account = actor.begin(client).await?;
    if account.transaction.execute(END, &[&account.id, &session_id]).await? == 0 {
        return Err(AccountError::Refused(format!("session {session_id} does not exist")));
    }
    account.record_session("session.end", json!({ "id": session_id })).await?;
    account.commit().await
}

/// Ends the browser's previous session at a new sign-in, in the caller's transaction. No audit log entry is appended.
pub(crate) async fn end_replaced_session(account: &LockedAccount<'_>, session_id: SessionId) -> Result<()> {
    account.transaction.execute(END, &[&account.id, &session_id]).await?;
    Ok(())
}

/// Ends every session of an account.
pub(crate) async fn end_all_sessions(client: &mut Client, actor: AccountActor<'_>) -> Result<()> {
    let account = actor.begin(client).await?;
    let ended = end_sessions(&account).await?;
    if ended > 0 {
        account.record_session("session.end_all", json!({ "sessions": ended })).await?;
    }
    account.commit().await
}

const REMEMBER: &str = include_str!("../../queries/accounts/remember_devices.sql");
const FORGET: &str = include_str!("../../queries/accounts/forget_devices.sql");
/// Maximum number of known devices of an account.
const MAX_DEVICES: i64 = 40;

/// SHA-256 hash that identifies a device: the hash of a browser's device cookie, or of a network.
pub(crate) type DeviceHash = [u8; 32];

/// Browser and network of a client, as hashes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientDevices {
    /// Hash of the browser's device cookie; `None` without a cookie.
    pub(crate) browser: Option<DeviceHash>,
    pub(crate) network: DeviceHash,
}

impl ClientDevices {
    /// Hashes the device cookie and the network of a client.
    pub(crate) fn new(cookie: Option<&str>, network: ClientNetwork) -> Self {
        let hash = Sha256::new().chain_update(b"network ").chain_update(network.octets());
        Self { browser: cookie.map(Token::hash), network: hash.finalize().into() }
    }
}

/// Stores a new browser hash and the client's network as known devices, in the transaction of the sign-in. The new hash
/// replaces the hash of the browser's previous device cookie.
async fn remember_devices(
    account: &LockedAccount<'_>,
    browser: &DeviceHash,
    client: &ClientDevices,
) -> Result<()> {
    let devices = [&browser[..], &client.network[..]];
    let replaced = client.browser.as_ref().map(|browser| &browser[..]);
    account.transaction.execute(REMEMBER, &[&account.id, &&devices[..], &replaced]).await?;
    account.transaction.execute(FORGET, &[&account.id, &MAX_DEVICES]).await?;
    Ok(())
}

const END_LINKS: &str = include_str!("../../queries/accounts/end_links.sql");
const END_SESSIONS: &str = include_str!("../../queries/accounts/end_sessions.sql");

pub(super) async fn end_links(account: &LockedAccount<'_>) -> Result<()> {
    account.transaction.execute(END_LINKS, &[&account.id]).await?;
    Ok(())
}

/// Ends an account's sessions, in the caller's transaction. Returns the number of ended sessions.
pub(crate) async fn end_sessions(account: &LockedAccount<'_>) -> Result<u64> {
    Ok(account.transaction.execute(END_SESSIONS, &[&account.id]).await?)
}

/// Ends an account's one-time links and sessions, and deletes its known devices. Returns the number of ended sessions.
pub(super) async fn end_links_and_sessions(account: &LockedAccount<'_>) -> Result<u64> {
    end_links(account).await?;
    account.transaction.execute(FORGET, &[&account.id, &0i64]).await?;
    end_sessions(account).await
}

/// Number of random bytes in a secret.
const RANDOM: usize = 32;

/// New secret with its hash.
#[derive(Debug)]
pub(crate) struct Token {
    /// Secret in hexadecimal digits.
    pub(crate) text: SecretString,
    pub(crate) hash: [u8; 32],
}

impl Token {
    pub(crate) fn generate() -> Self {
        let random: [u8; RANDOM] = rand::rng().random();
        let text: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { hash: Self::hash(&text), text: text.into() }
    }

    /// Hash of a secret that a client presents.
    pub(crate) fn hash(text: &str) -> [u8; 32] {
        Sha256::digest(text.as_bytes()).into()
    }
}
