//! What was done to an account, kept for good.
//!
//! Invariant: a change and its entry commit together; an entry holds no secret.

use chrono::{DateTime, Utc};
use clap::Args;
use serde_json::{Value, json};
use store::db::DatabaseSettings;
use tokio_postgres::{Row, Transaction};

use super::email::email;
use super::owner::owner;
use super::report;

const RECORD: &str = include_str!("../../queries/accounts/record.sql");
const HISTORY: &str = include_str!("../../queries/accounts/history.sql");

/// The audit log of an account.
#[derive(Debug, Args)]
pub struct Audit {
    /// Email address of the account, which may be deleted
    email: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Notes what the transaction does to an account.
pub(super) async fn record(
    transaction: &Transaction<'_>,
    account: i64,
    action: &str,
    details: Value,
) -> Result<(), tokio_postgres::Error> {
    transaction.execute(RECORD, &[&account, &action, &details]).await?;
    Ok(())
}

/// Runs `api audit`.
pub async fn run_audit(it: Audit, database: &DatabaseSettings) -> anyhow::Result<()> {
    let rows = owner(database).await?.query(HISTORY, &[&email(&it.email)?]).await?;
    let rows = rows.iter().map(object).collect::<Result<Vec<_>, _>>()?;
    report::rows(&rows, &["at", "actor", "action", "details"], it.json);
    Ok(())
}

fn object(row: &Row) -> Result<Value, tokio_postgres::Error> {
    Ok(json!({
        "at": row.try_get::<_, DateTime<Utc>>("at")?,
        "actor": row.try_get::<_, String>("actor")?,
        "action": row.try_get::<_, String>("action")?,
        "details": row.try_get::<_, Value>("details")?,
    }))
}
