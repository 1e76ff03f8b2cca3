//! Ingest: reads vendors' feed files, and publishes their rows to the log as record batches.
//!
//! Invariants: every row is loaded, or stored as a reject. The same input gives the same record batches. A batch is
//! reported as published only after it is on disk.

/// Accumulation of rows into record batches, with statistics, coverage and retraction checks.
mod batch {
    pub(crate) mod batch_spool;
    pub(crate) mod coverage;
    pub(crate) mod load_stats;
    pub(crate) mod price_evidence;
    pub(crate) mod retractions;
    pub(crate) mod reviewed_rows;
    pub(crate) mod row_accumulator;
    pub(crate) mod row_buffers;
    pub(crate) mod row_review;
}
pub mod cli;
pub mod format;
pub mod fuzz_targets;
pub mod infer;
pub mod load;
/// Access of ingest to the log: reader, publisher, runs and their states.
pub mod log {
    pub(crate) mod publisher;
    pub mod reader;
    pub(crate) mod run_states;
}
pub mod metrics;
mod normalize;
/// Price rows: parsing into scaled integers, and grouping into price batches.
mod price {
    pub(crate) mod bar_parser;
    pub(crate) mod conflicting_prices;
    pub(crate) mod price_batch;
}
pub mod pull;
pub mod rejects;
/// Commands for past runs: verify, undo, freshness, inspect, export and import.
pub mod runs {
    pub mod archive;
    pub mod freshness;
    pub mod inspect;
    pub mod undo;
    pub mod verify;
}
/// Access to feed files: search on disk and in archives, standard input, unpacking to text, and splitting into records.
mod source {
    pub(crate) mod csv_reader;
    pub(crate) mod feed_files;
    pub(crate) mod file_access;
    pub(crate) mod parquet_table;
    pub(crate) mod unpack;
    pub(crate) mod zip_archive;
}
pub mod watch;
