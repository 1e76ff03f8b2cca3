//! Account operations for the command line and the dashboard: accounts, keys, plans, sessions and links.
//!
//! Invariants: a secret is shown once, at its creation, and stored as a hash. Deleted accounts and keys stay in the
//! database, but cannot be used. A change of an account and its audit log entry are written in one transaction. Only
//! changes of sessions may lack an entry. First, the starts and ends of sessions are not recorded after a maximum
//! number of entries within 24 hours. Second, if a new session replaces an older session, the end of the older session
//! is not recorded.

pub(crate) mod accounts;
mod actor;
pub(crate) mod audit;
pub(crate) mod devices;
mod email;
mod error;
mod key_name;
pub(crate) mod keys;
pub(crate) mod links;
pub(crate) mod password;
pub(crate) mod portfolios;
pub(crate) mod revocation;
mod rows;
mod secret_token;
pub(crate) mod sessions;
pub(crate) mod statistics;
pub(crate) mod subscription_changes;

pub(crate) use actor::{AccountActor, LockedAccount};
pub(crate) use email::parse_email;
pub(crate) use error::AccountError;
