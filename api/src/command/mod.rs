//! Commands of the operator: `api account …`, `api key …`, `api usage` and `api audit`.
//!
//! The commands connect as the owner of the database.

mod accounts;
pub mod cli;
pub(crate) mod common;
mod keys;
pub(crate) mod reports;
