//! Feeds into the log: reads vendors' files, brings their rows into one form, and publishes them as frames.
//!
//! Invariants: a row is loaded or kept as a reject, never dropped; the same input gives the same frames; a frame is
//! reported as published only once the log has it on disk.

mod batch;
pub mod cli;
mod clock;
pub mod format;
pub mod fuzz_targets;
pub mod generate;
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
