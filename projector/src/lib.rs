//! Projector: applies the log to facts and derives read tables from them.
//!
//! Invariants:
//! - Facts, dirty symbols, dead letters and the checkpoint commit in one transaction. If few securities change, the
//!   read tables commit in the same transaction. If many change, the read tables commit in a second transaction.
//! - Only the projector with the newest lease epoch of a fact set writes to it.
//! - Every message is applied, becomes a dead letter or stops the projector.
//! - Derived rows depend only on the set of events. Replaying the log yields identical tables.

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
