//! Revocation of sessions and one-time links of an account.
//!
//! Invariant: whatever changes who may come in ends all of it, in its own transaction.

use tokio_postgres::Transaction;

use super::error::AccountError;

const END_LINKS: &str = include_str!("../../queries/accounts/end_links.sql");
const END_SESSIONS: &str = include_str!("../../queries/accounts/end_sessions.sql");

/// Ends an account's links.
pub(super) async fn end_links(transaction: &Transaction<'_>, account: i64) -> Result<(), AccountError> {
    transaction.execute(END_LINKS, &[&account]).await?;
    Ok(())
}

/// Ends an account's sessions; gives how many there were.
pub(super) async fn end_sessions(transaction: &Transaction<'_>, account: i64) -> Result<u64, AccountError> {
    Ok(transaction.execute(END_SESSIONS, &[&account]).await?)
}

/// Ends all of it; gives how many sessions there were.
pub(super) async fn close(transaction: &Transaction<'_>, account: i64) -> Result<u64, AccountError> {
    end_links(transaction, account).await?;
    end_sessions(transaction, account).await
}
