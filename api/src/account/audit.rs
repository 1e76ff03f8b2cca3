//! Changes of accounts: the locked account, its audit log, and the queries and errors of all account operations.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use store::{FromRow, find_rows, sql_row};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Transaction};

use crate::auth::{AccountId, Tier};

const BY_ADDRESS: &str = include_str!("../../queries/accounts/lock_account.sql");
const BY_ID: &str = include_str!("../../queries/accounts/lock_own_account.sql");
const RECORD: &str = include_str!("../../queries/accounts/record.sql");
const ACTIVE_KEYS: &str = include_str!("../../queries/accounts/count_active_keys.sql");
/// Maximum number of changes of one kind per holder within 24 hours. This limits the size of the audit log.
const MAX_CHANGES: i64 = 50;
/// Maximum number of audit log entries for the session starts of one holder within 24 hours. Session ends have the same
/// limit.
const MAX_SESSION_ENTRIES: i64 = 200;
/// Actor name of the holder in the audit log.
const HOLDER: &str = "account";

/// Actor of an account change. Each variant contains the email address or the id of the account to be changed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AccountActor<'a> {
    /// The operator, with the account's email address in lower case.
    Operator(&'a str),
    /// The signed-in holder, with the account's id.
    Holder(AccountId),
}

/// Locked row of an account, with the transaction that changes the account. The lock lasts until the transaction ends,
/// so that changes of the account are made one after the other.
pub(crate) struct LockedAccount<'t> {
    pub(crate) transaction: Transaction<'t>,
    pub(crate) id: AccountId,
    pub(crate) email: String,
    pub(crate) subscription: Subscription,
    actor: Option<&'static str>,
}

sql_row! {
    /// Subscription of an account: current tier, end of the paid period, and next tier.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    pub(crate) struct Subscription {
        pub(crate) tier: Tier,
        /// End of the paid period. After it, `next_tier` applies. `None` if `tier` applies without an end.
        pub(crate) paid_until: Option<DateTime<Utc>>,
        pub(crate) next_tier: Tier,
    }
}

impl AccountActor<'_> {
    /// Begins a transaction, and locks the row of the account to be changed.
    pub(crate) async fn begin(self, client: &mut Client) -> Result<LockedAccount<'_>> {
        self.lock(client.transaction().await?).await
    }

    /// Locks the row of the account to be changed, until the transaction ends.
    pub(crate) async fn lock(self, transaction: Transaction<'_>) -> Result<LockedAccount<'_>> {
        let (row, actor) = match self {
            Self::Operator(email) => (transaction.query_opt(BY_ADDRESS, &[&email]).await?, None),
            Self::Holder(id) => (transaction.query_opt(BY_ID, &[&id]).await?, Some(HOLDER)),
        };
        let row = row.ok_or_else(|| match self {
            Self::Operator(email) => AccountError::NoAccount(email.to_owned()),
            Self::Holder(id) => AccountError::NoAccount(id.to_string()),
        })?;
        Ok(LockedAccount {
            id: row.try_get("id")?,
            email: row.try_get("email")?,
            subscription: Subscription::from_row(&row)?,
            actor,
            transaction,
        })
    }
}

impl LockedAccount<'_> {
    /// True if the actor of the change is the holder, false if the actor is the operator.
    pub(crate) fn is_own(&self) -> bool {
        self.actor.is_some()
    }

    /// Number of the account's active keys. The count is exact, because the account is locked.
    pub(crate) async fn count_active_keys(&self) -> Result<i64> {
        Ok(self.transaction.query_one(ACTIVE_KEYS, &[&self.id]).await?.try_get("active")?)
    }

    /// Appends an audit log entry for the transaction's change. `details` must not contain a secret. Fails if the
    /// holder already has [`MAX_CHANGES`] entries with this `action` within 24 hours.
    pub(crate) async fn record(&self, action: &str, details: Value) -> Result<()> {
        if self.append(action, details, Some(MAX_CHANGES)).await? {
            return Ok(());
        }
        Err(AccountError::Refused(format!(
            "cannot make the change: at most {MAX_CHANGES} equal changes can be made per day; try again tomorrow"
        )))
    }

    /// Appends an audit log entry for a change of a key. Every change creates or deletes a key, and the number of new
    /// keys per day is limited. These entries therefore need no separate limit.
    pub(crate) async fn record_key(&self, action: &str, details: Value) -> Result<()> {
        self.append(action, details, None).await?;
        Ok(())
    }

    /// Appends an audit log entry for the start or end of a session. If the holder already has [`MAX_SESSION_ENTRIES`]
    /// entries of this action within 24 hours, no entry is appended. The session change itself is not refused.
    pub(crate) async fn record_session(&self, action: &str, details: Value) -> Result<()> {
        self.append(action, details, Some(MAX_SESSION_ENTRIES)).await?;
        Ok(())
    }

    /// Appends an audit log entry. Returns `false` without appending if the holder already has `most` entries of the
    /// action within 24 hours. If `most` is `None`, the number is not limited. The operator has no limit.
    async fn append(&self, action: &str, details: Value, most: Option<i64>) -> Result<bool> {
        let most = most.filter(|_| self.is_own());
        Ok(self.transaction.execute(RECORD, &[&self.id, &action, &details, &self.actor, &most]).await? > 0)
    }

    pub(crate) async fn commit(self) -> Result<()> {
        Ok(self.transaction.commit().await?)
    }
}

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
    Ok(find_rows(client, HISTORY, &[&email]).await?)
}

/// Lists the latest entries of one account, newest first.
pub(crate) async fn list_recent_entries(client: &Client, account_id: AccountId) -> Result<Vec<AuditEntry>> {
    Ok(find_rows(client, LOG, &[&account_id, &SHOWN]).await?)
}

/// Result of an account operation.
pub(crate) type Result<T, E = AccountError> = std::result::Result<T, E>;

/// Errors of an account operation.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AccountError {
    #[error("{0} is not an email address")]
    Email(String),
    #[error("account {0} does not exist")]
    NoAccount(String),
    #[error("account {0} already exists")]
    Taken(String),
    /// Refusal by a limit or another rule for accounts. The value is the complete message for the caller.
    #[error("{0}")]
    Refused(String),
    #[error("{}", store::db::error_chain(.0))]
    Database(#[from] tokio_postgres::Error),
}

/// Runs a query that returns at most one row, and converts the row; `None` without a row.
pub(super) async fn find_row<T: FromRow>(
    client: &Client,
    statement: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Option<T>> {
    let row = client.query_opt(statement, parameters).await?;
    Ok(row.as_ref().map(T::from_row).transpose()?)
}
