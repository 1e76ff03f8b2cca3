//! Queries on the read tables: served generation, look-ups, batches.
//!
//! Invariant: this module does not depend on HTTP, keys or rate limits. Its errors are [`QueryError`].

mod error;
pub(crate) mod lag;
pub(crate) mod lookup;
mod lookup_batch;
pub(crate) mod memory_tables;
pub(crate) mod projection;

pub(crate) use error::QueryError;
