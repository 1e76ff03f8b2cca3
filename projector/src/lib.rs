//! The projector: NATS → facts → read tables.
//!
//! Invariants: facts, read tables, dead letters and the position commit in one transaction; only the holder of the
//! newest epoch writes; a message is applied, set aside as a dead letter, or stops the projector, never skipped;
//! every derived number is a function of the set of events, so replaying the log gives identical tables.

pub mod apply;
pub mod backup;
pub mod cli;
pub mod daemon;
pub mod derive;
pub mod error;
#[cfg(feature = "parquet")]
pub mod export;
pub mod facts;
pub mod generation;
pub mod generations;
pub mod monitoring;
pub mod policy;
pub mod progress;
pub mod quarantine;
pub mod report;
pub mod review;
pub mod settings;
pub mod write;
