//! Authentication primitives: API keys, client addresses, throttle of unauthenticated requests, tiers, and ids of accounts.

pub(crate) mod address_throttle;
pub(crate) mod client_address;
pub(crate) mod credential;
pub(crate) mod tier;

use store::id_type;

pub(crate) use credential::{GeneratedKey, redact_secrets};

id_type! {
    /// Id of an account.
    pub(crate) struct AccountId(i64);

    /// Id of an API key.
    pub(crate) struct KeyId(i64);

    /// Id of a browser session.
    pub(crate) struct SessionId(i64);
}
