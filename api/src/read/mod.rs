//! From the read tables to rows: which generation is served, and how its rows are looked up.
//!
//! Invariant: nothing here knows of HTTP, keys or tiers' limits on calls; what fails is a [`ReadError`].

mod batch;
mod error;
pub(crate) mod lag;
pub(crate) mod lookup;
pub(crate) mod projection;
pub(crate) mod universe;

pub(crate) use error::ReadError;
