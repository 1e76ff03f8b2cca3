//! Module index: records in `records.rs`, bars in `prices.rs`, the cache in `fact_cache.rs`, served versions
//! in `known_at.rs`.

pub mod applied_facts;
pub(crate) mod dividend_feeds;
pub mod fact_cache;
pub mod known_at;
pub mod prices;
pub mod records;
