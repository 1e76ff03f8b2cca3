//! Commands of the operator: `api account …`, `api key …`, `api usage` and `api audit`.
//!
//! The commands connect as the owner of the database.

mod accounts;
mod audit;
pub mod cli;
mod instant_argument;
mod keys;
mod links;
mod output;
mod owner_connection;
mod sessions;
mod usage;

pub use accounts::{AccountCommand, run_account};
pub use audit::{AuditArguments, run_audit};
pub use keys::{KeyCommand, run_key};
pub use usage::{UsageArguments, run_usage};
