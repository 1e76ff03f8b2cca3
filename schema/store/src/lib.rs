//! Postgres store: migrations, tables of facts and of generations, and functions that read and write their rows.
//!
//! Invariant: this crate makes no decisions of the domain. `market` interprets the stored rows.

pub mod analysts;
pub mod connect;
pub mod copy;
pub mod db;
mod error;
pub mod facts;
pub mod history;
pub mod ids;
pub mod past_facts;
pub mod published_files;
pub mod rows;
mod settings;
pub mod symbol_facts;
pub mod tls;
pub mod versions;
pub mod view;

pub use copy::{FromRow, find_rows};
