//! Commands of the operator: `api account …`, `api key …`, `api usage` and `api audit`.
//!
//! They connect as the owner of the database.

mod accounts;
mod audit;
pub mod cli;
mod instant;
mod keys;
mod links;
mod owner;
mod report;
mod sessions;
mod usage;

pub use accounts::{AccountCommand, run_account};
pub use audit::{Audit, run_audit};
pub use keys::{KeyCommand, run_key};
pub use usage::{Usage, run_usage};
