//! Feeds into the log: reads vendors' files, brings their rows into one form, and publishes them as frames.
//!
//! Invariants: a row is loaded or kept as a reject, never dropped; the same input gives the same frames; a frame is
//! reported as published only once the log has it on disk.

pub mod archive;
mod bar;
pub mod cli;
mod clock;
mod collect;
mod coverage;
mod encode;
pub mod error;
mod fixed;
pub mod format;
pub mod freshness;
pub mod generate;
mod holdings;
mod input;
pub mod load;
mod lock;
pub mod log;
pub mod metrics;
mod nearest;
mod normalize;
#[cfg(feature = "parquet")]
mod parquet_table;
mod prices;
pub mod probe;
mod produce;
pub mod propose;
mod publication;
mod publish;
pub mod pull;
mod records;
pub mod rejects;
pub mod report;
mod retractions;
mod run;
mod run_status;
pub mod show;
mod source;
mod spool;
mod standard_input;
mod stats;
pub mod undo;
mod unpack;
pub mod verify;
pub mod watch;
mod zipped;
