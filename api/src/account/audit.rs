//! Audit log of accounts: append-only entries of every change.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use tokio_postgres::{Client, Error, Row};

use super::error::AccountError;

const HISTORY: &str = include_str!("../../queries/accounts/history.sql");
const LOG: &str = include_str!("../../queries/accounts/log.sql");
/// Entries a holder is shown.
const SHOWN: i64 = 200;

/// One entry of the audit log.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Entry {
    pub(crate) at: DateTime<Utc>,
    /// A role of the database, or the account itself.
    pub(crate) actor: String,
    pub(crate) action: String,
    pub(crate) details: Value,
}

impl Entry {
    fn read(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            at: row.try_get("at")?,
            actor: row.try_get("actor")?,
            action: row.try_get("action")?,
            details: row.try_get("details")?,
        })
    }
}

/// What was done to all accounts an address ever had, oldest first.
pub(crate) async fn history(client: &Client, email: &str) -> Result<Vec<Entry>, AccountError> {
    let rows = client.query(HISTORY, &[&email]).await?;
    Ok(rows.iter().map(Entry::read).collect::<Result<_, _>>()?)
}

/// The newest entries of one account, newest first.
pub(crate) async fn log(client: &Client, account: i64) -> Result<Vec<Entry>, AccountError> {
    let rows = client.query(LOG, &[&account, &SHOWN]).await?;
    Ok(rows.iter().map(Entry::read).collect::<Result<_, _>>()?)
}
