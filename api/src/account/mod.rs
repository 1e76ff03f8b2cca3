//! Account operations for the command line and the dashboard.
//!
//! Invariants: secrets are stored as hashes. A change and its audit log entry are written in one transaction. Only
//! session changes may lack an entry.

pub(crate) mod accounts;
pub(crate) mod audit;
pub(crate) mod keys;
pub(crate) mod names;
pub(crate) mod password;
pub(crate) mod portfolios;
pub(crate) mod sessions;
pub(crate) mod statistics;

pub(crate) use audit::{AccountActor, AccountError, LockedAccount};
pub(crate) use names::parse_email;
