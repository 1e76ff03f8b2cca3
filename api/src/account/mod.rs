//! Account operations shared by the commands and the dashboard: accounts, keys, plans, sessions, links.
//!
//! Invariants: a secret is shown once, at its creation, and stored as a hash. Deleted rows stay in the table, unusable.
//! Every change is in the audit log, in the same transaction.

pub(crate) mod accounts;
pub(crate) mod audit;
mod email;
mod error;
pub(crate) mod keys;
pub(crate) mod links;
mod actor;
pub(crate) mod password;
pub(crate) mod plan;
pub(crate) mod sessions;
pub(crate) mod statistics;
mod secret_token;
pub(crate) mod usage;
mod revocation;

pub(crate) use email::parse_email;
pub(crate) use error::AccountError;
pub(crate) use actor::{LockedAccount, AccountActor};
