//! Ingest: reads vendors' feed files, and publishes their rows to the log as record batches.
//!
//! Invariants: every row is loaded, or stored as a reject. The same input gives the same record batches. A batch is
//! reported as published only after it is on disk.

mod batch;
pub mod cli;
mod clock;
pub mod format;
pub mod fuzz_targets;
pub mod infer;
pub mod load;
pub mod log;
pub mod metrics;
mod normalize;
mod price;
pub mod pull;
pub mod rejects;
pub mod runs;
mod source;
mod suggest;
pub mod watch;
