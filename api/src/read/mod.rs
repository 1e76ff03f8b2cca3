//! Queries on the read tables: served generation, look-ups, batches.
//!
//! Invariant: this module does not depend on HTTP, keys or rate limits. Its errors are [`ReadError`].

mod batch;
mod error;
pub(crate) mod lag;
pub(crate) mod lookup;
pub(crate) mod projection;
pub(crate) mod universe;

pub(crate) use error::ReadError;
