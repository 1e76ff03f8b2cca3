//! Account operations for the command line and the dashboard.
//!
//! Invariants: secrets are stored as hashes. A change and its audit log entry are written in one transaction. Only
//! session changes may lack an entry.

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
