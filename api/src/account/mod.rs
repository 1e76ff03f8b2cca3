//! `api account …`, `api key …`, `api usage` and `api audit`: administration by the operator, as the owner of the database.
//!
//! Invariants: a secret is printed once, at creation; what is deleted stays in the table, unusable; every change is in
//! the audit log.

mod accounts;
mod audit;
mod email;
mod error;
mod keys;
mod owner;
mod report;
mod usage;

pub use accounts::{AccountCommand, run_account};
pub use audit::{Audit, run_audit};
pub use keys::{KeyCommand, run_key};
pub use usage::{Usage, run_usage};
