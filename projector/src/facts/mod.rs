//! Fact tables: they are updated with the record batches of the log. Also contains the cache of facts.

pub(crate) mod dividend_feeds;
pub mod fact_cache;
pub mod prices;
pub mod records;
mod stored_records;
mod stored_years;
