//! Postgres store: migrations, tables of facts and of generations, and functions that read and write their rows.
//!
//! Invariant: this crate makes no decisions of the domain. `market` interprets the stored rows.

pub mod analysts;
pub mod connect;
pub mod copy;
pub mod db;
mod error;
pub mod facts;
pub mod feed_files;
pub mod from_row;
pub mod history;
pub mod ids;
pub mod past_facts;
pub mod records;
mod schema;
pub mod symbol_facts;
pub mod tls;
pub mod versions;
pub mod view;
pub mod years;

pub use from_row::FromRow;
