//! Queries on the read tables. A request reads one generation of these tables from start to end: it pins the
//! generation.
//!
//! Invariant: this module does not depend on HTTP, keys or rate limits. Its functions fail with [`QueryError`].

mod benchmark_cache;
pub(crate) mod changes;
mod data_version;
mod error;
mod kept_generations;
pub(crate) mod lag;
pub(crate) mod lookup;
mod lookup_batch;
pub(crate) mod memory_tables;
pub(crate) mod past_securities;
pub(crate) mod past_version;
pub(crate) mod pool;
pub(crate) mod projection;
pub(crate) mod read_source;
mod record_batches;
mod served_generation;

pub(crate) use data_version::DataVersion;
pub(crate) use error::QueryError;
pub(crate) use served_generation::ServedGeneration;
