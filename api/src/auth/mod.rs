//! Authentication primitives: API keys, client addresses, throttle of unauthenticated requests, tiers.

pub(crate) mod address_throttle;
pub(crate) mod client_address;
pub(crate) mod credential;
pub(crate) mod ids;
pub(crate) mod tier;
pub(crate) mod timestamp_map;

pub(crate) use credential::{GeneratedKey, redact_secrets};
