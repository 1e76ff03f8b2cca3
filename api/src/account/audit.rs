//! Audit log of accounts: append-only entries of all changes.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use store::sql_row;
use tokio_postgres::Client;

use super::error::Result;
use super::rows::find_rows;
use crate::auth::ids::AccountId;

const HISTORY: &str = include_str!("../../queries/accounts/history.sql");
const LOG: &str = include_str!("../../queries/accounts/log.sql");
const REFUSAL: &str = include_str!("../../queries/accounts/record_refusal.sql");
/// Maximum number of refused sign-ins that the audit log of an account records within 24 hours.
const MAX_REFUSALS: i64 = 50;
/// Maximum number of entries that the dashboard shows to a holder.
const SHOWN: i64 = 200;

sql_row! {
    /// Audit log entry.
    #[derive(Debug, Clone, Serialize)]
    pub(crate) struct AuditEntry {
        pub(crate) at: DateTime<Utc>,
        /// Actor: `account` for the holder, `visitor` for a refused sign-in, or the database role of the operator.
        pub(crate) actor: String,
        pub(crate) action: String,
        pub(crate) details: Value,
    }
}

/// Appends a refused sign-in to the account's audit log. After [`MAX_REFUSALS`] such entries within 24 hours, no entry
/// is appended.
pub(crate) async fn record_refused_sign_in(client: &Client, id: AccountId, address: &str) -> Result<()> {
    client.execute(REFUSAL, &[&id, &address, &MAX_REFUSALS]).await?;
    Ok(())
}

/// Lists the audit log entries of all accounts with this email address, oldest first. Deleted accounts are included.
pub(crate) async fn list_email_history(client: &Client, email: &str) -> Result<Vec<AuditEntry>> {
    find_rows(client, HISTORY, &[&email]).await
}

/// Lists the latest entries of one account, newest first.
pub(crate) async fn list_recent_entries(client: &Client, account_id: AccountId) -> Result<Vec<AuditEntry>> {
    find_rows(client, LOG, &[&account_id, &SHOWN]).await
}
