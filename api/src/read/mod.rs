//! Queries on the read tables: served generation, look-ups, batches.
//!
//! Invariant: nothing here knows of HTTP, keys or tiers' limits on calls; what fails is a [`ReadError`].

mod batch;
mod error;
pub(crate) mod lag;
pub(crate) mod lookup;
pub(crate) mod projection;
pub(crate) mod universe;

pub(crate) use error::ReadError;
