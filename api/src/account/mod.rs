//! Account operations shared by the commands and the dashboard: accounts, keys, plans, sessions, links.
//!
//! Invariants: a secret is shown once, at its creation, and stored as a hash; what is deleted stays in the table,
//! unusable; every change is in the audit log, in the transaction that makes it.

pub(crate) mod accounts;
pub(crate) mod audit;
mod email;
mod error;
pub(crate) mod keys;
pub(crate) mod links;
mod party;
pub(crate) mod password;
pub(crate) mod plan;
pub(crate) mod sessions;
pub(crate) mod statistics;
mod token;
pub(crate) mod usage;
mod ways_in;

pub(crate) use email::email;
pub(crate) use error::AccountError;
pub(crate) use party::{Locked, Party};
