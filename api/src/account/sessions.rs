//! Sessions of account holders in their browsers.
//!
//! Invariants: the secret is in the cookie alone; a session ends with 30 minutes of idleness, after 12 hours, when its
//! holder signs out, and with its account's being disabled or deleted; a changed password ends all of them, and a new one
//! begins where it was changed.

use chrono::{DateTime, Utc};
use secrecy::SecretString;
use serde::Serialize;
use serde_json::json;
use tokio_postgres::{Client, Error, Row, Transaction};

use super::error::AccountError;
use super::party::{Locked, Party};
use super::token::Token;
use super::ways_in;

const BEGIN: &str = include_str!("../../queries/accounts/begin_session.sql");
const PRUNE: &str = include_str!("../../queries/accounts/prune_sessions.sql");
const FIND: &str = include_str!("../../queries/accounts/find_session.sql");
const LIST: &str = include_str!("../../queries/accounts/list_sessions.sql");
const END: &str = include_str!("../../queries/accounts/end_session.sql");
const END_OF_COOKIE: &str = include_str!("../../queries/accounts/end_session_of_cookie.sql");
/// Sessions an account may have at once; the oldest go.
const MOST: i64 = 20;
/// Characters of a browser's name that are kept.
const AGENT: usize = 200;

/// Where a session is begun from.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) address: String,
    /// What the browser calls itself.
    pub(crate) agent: String,
}

/// Whose session a request belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) id: i64,
    pub(crate) account: i64,
    pub(crate) email: String,
}

/// A session as its holder sees it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Shown {
    pub(crate) id: i64,
    pub(crate) address: String,
    pub(crate) agent: String,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) seen_at: DateTime<Utc>,
}

/// Begins a session in the caller's transaction; gives what its cookie holds.
pub(crate) async fn begin(
    transaction: &Transaction<'_>,
    account: &Locked,
    origin: &Origin,
) -> Result<SecretString, AccountError> {
    let token = Token::draw();
    let agent: String = origin.agent.chars().filter(|c| !c.is_control()).take(AGENT).collect();
    transaction.execute(BEGIN, &[&&token.hash[..], &account.id, &origin.address, &agent]).await?;
    transaction.execute(PRUNE, &[&account.id, &MOST]).await?;
    account.record(transaction, "session.begin", json!({ "address": origin.address })).await?;
    Ok(token.text)
}

/// The session of a cookie, while it lasts.
pub(crate) async fn find(client: &Client, cookie: &str) -> Result<Option<Session>, AccountError> {
    let Some(row) = client.query_opt(FIND, &[&&Token::hash(cookie)[..]]).await? else { return Ok(None) };
    Ok(Some(Session {
        id: row.try_get("id")?,
        account: row.try_get("account_id")?,
        email: row.try_get("email")?,
    }))
}

/// Ends the session of a cookie, if there is one.
pub(crate) async fn end_of_cookie(client: &mut Client, cookie: &str) -> Result<(), AccountError> {
    let transaction = client.transaction().await?;
    if let Some(row) = transaction.query_opt(END_OF_COOKIE, &[&&Token::hash(cookie)[..]]).await? {
        let account = Party::Holder(row.try_get("account_id")?).lock(&transaction).await?;
        account.record(&transaction, "session.end", json!({})).await?;
    }
    Ok(transaction.commit().await?)
}

/// An account's sessions, newest first.
pub(crate) async fn list(client: &Client, account: i64) -> Result<Vec<Shown>, AccountError> {
    let read = |row: &Row| -> Result<Shown, Error> {
        Ok(Shown {
            id: row.try_get("id")?,
            address: row.try_get("address")?,
            agent: row.try_get("agent")?,
            created_at: row.try_get("created_at")?,
            seen_at: row.try_get("seen_at")?,
        })
    };
    Ok(client.query(LIST, &[&account]).await?.iter().map(read).collect::<Result<_, _>>()?)
}

/// Ends one session of an account.
pub(crate) async fn end(client: &mut Client, party: Party<'_>, id: i64) -> Result<(), AccountError> {
    let transaction = client.transaction().await?;
    let account = party.lock(&transaction).await?;
    if transaction.execute(END, &[&account.id, &id]).await? == 0 {
        return Err(AccountError::Refused(format!("there is no session {id}")));
    }
    account.record(&transaction, "session.end", json!({ "id": id })).await?;
    Ok(transaction.commit().await?)
}

/// Ends the session that another takes the place of, in the caller's transaction.
pub(crate) async fn replace(
    transaction: &Transaction<'_>,
    account: &Locked,
    id: i64,
) -> Result<(), AccountError> {
    transaction.execute(END, &[&account.id, &id]).await?;
    Ok(())
}

/// Ends every session of an account; gives how many there were.
pub(crate) async fn end_all(client: &mut Client, party: Party<'_>) -> Result<u64, AccountError> {
    let transaction = client.transaction().await?;
    let account = party.lock(&transaction).await?;
    let ended = end_every(&transaction, &account).await?;
    account.record(&transaction, "session.end_all", json!({ "sessions": ended })).await?;
    transaction.commit().await?;
    Ok(ended)
}

/// Ends every session of an account in the caller's transaction; gives how many there were.
pub(crate) async fn end_every(transaction: &Transaction<'_>, account: &Locked) -> Result<u64, AccountError> {
    ways_in::end_sessions(transaction, account.id).await
}
