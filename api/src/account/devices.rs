//! Known devices: browsers and networks of an account's sign-ins in the last 30 days.
//!
//! Invariant: sign-ins from known devices are served first, but still need the password.

use sha2::{Digest, Sha256};

use super::actor::LockedAccount;
use super::error::Result;
use super::secret_token::Token;
use crate::auth::client_address::ClientNetwork;

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
pub(super) async fn remember_devices(
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

/// Deletes all known devices of an account.
pub(super) async fn forget_devices(account: &LockedAccount<'_>) -> Result<()> {
    account.transaction.execute(FORGET, &[&account.id, &0i64]).await?;
    Ok(())
}
