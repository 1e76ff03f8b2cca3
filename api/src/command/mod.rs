//! Commands of the operator: `api account …`, `api key …`, `api usage`, `api audit` and `api maintenance …`.
//!
//! The commands connect as the owner of the database.

mod accounts;
pub mod cli;
pub(crate) mod common;
mod keys;
mod maintenance;
pub(crate) mod reports;
