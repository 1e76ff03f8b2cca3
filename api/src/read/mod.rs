//! Queries on the read tables. All queries of a request read one generation, which is a complete set of these tables.
//!
//! Invariant: this module does not depend on HTTP, keys or rate limits.

pub(crate) mod changes;
mod control_state;
mod data_version;
pub(crate) mod dividend_revisions;
mod error;
pub(crate) mod lag;
pub(crate) mod lookup;
pub(crate) mod memory_tables;
pub(crate) mod past_securities;
pub(crate) mod past_version;
pub(crate) mod pool;
pub(crate) mod projection;
pub(crate) mod read_source;
mod served_generation;

pub(crate) use data_version::DataVersion;
pub(crate) use error::{AmbiguousSymbol, QueryError};
pub(crate) use served_generation::ServedGeneration;
