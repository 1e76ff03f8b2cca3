//! Fact tables: records and bars merged into packed rows, and the in-memory cache of those rows.

pub mod applied_facts;
pub mod fact_cache;
pub mod prices;
pub mod records;
