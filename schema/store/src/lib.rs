//! Postgres: migrations, the tables of a generation, how rows get in and how facts are read.
//!
//! Invariant: nothing is decided here; what a stored row means is in `market`.

pub mod analysts;
pub mod copy;
pub mod db;
mod error;
pub mod facts;
pub mod from_row;
pub mod history;
pub mod records;
mod schema;
pub mod symbol_facts;
pub mod tls;
pub mod years;

pub use from_row::FromRow;
