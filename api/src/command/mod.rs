//! Commands of the operator: `api account …`, `api key …`, `api usage` and `api audit`.
//!
//! The commands connect as the owner of the database.

mod accounts;
mod arguments;
mod audit;
pub mod cli;
mod keys;
mod links;
mod output;
mod sessions;
mod usage;
