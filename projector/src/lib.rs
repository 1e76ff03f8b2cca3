//! Projector: applies the log to facts and derives read tables from them.
//!
//! Invariants:
//! - Facts, dirty symbols, dead letters and the checkpoint commit in one transaction.
//! - Only the projector with the newest lease epoch of a fact set writes to the fact set.
//! - Every message is applied, becomes a dead letter or stops the projector.
//! - Derived rows depend only on the set of events and on the inputs of the generation.

pub mod apply;
pub mod backup;
pub mod cli;
pub mod daemon;
pub mod derive;
pub mod error;
pub mod facts;
pub mod generation;
pub mod generations;
pub mod monitoring;
mod policy;
mod progress;
mod publish;
mod quarantine;
mod report;
mod review;
pub mod settings;
pub mod write;
