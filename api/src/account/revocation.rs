//! Revocation of sessions, one-time links and known devices.
//!
//! Invariant: a new password revokes all three, and so does disabling the account. A new email address revokes the
//! links.

use super::actor::LockedAccount;
use super::devices;
use super::error::Result;

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
    devices::forget_devices(account).await?;
    end_sessions(account).await
}
