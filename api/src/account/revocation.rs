//! Revocation of sessions, one-time links and known devices of an account.
//!
//! Invariant: a new password revokes sessions, one-time links and devices in the same transaction. Disabling the
//! account does the same. A new email address revokes only the one-time links.

use tokio_postgres::Transaction;

use super::devices;
use super::error::AccountError;
use crate::auth::ids::AccountId;

const END_LINKS: &str = include_str!("../../queries/accounts/end_links.sql");
const END_SESSIONS: &str = include_str!("../../queries/accounts/end_sessions.sql");

pub(super) async fn end_links(
    transaction: &Transaction<'_>,
    account_id: AccountId,
) -> Result<(), AccountError> {
    transaction.execute(END_LINKS, &[&account_id]).await?;
    Ok(())
}

/// Ends an account's sessions. Returns the number of ended sessions.
pub(super) async fn end_sessions(
    transaction: &Transaction<'_>,
    account_id: AccountId,
) -> Result<u64, AccountError> {
    Ok(transaction.execute(END_SESSIONS, &[&account_id]).await?)
}

/// Ends an account's one-time links and sessions, and deletes its known devices. Returns the number of ended sessions.
pub(super) async fn end_links_and_sessions(
    transaction: &Transaction<'_>,
    account_id: AccountId,
) -> Result<u64, AccountError> {
    end_links(transaction, account_id).await?;
    devices::forget_devices(transaction, account_id).await?;
    end_sessions(transaction, account_id).await
}
