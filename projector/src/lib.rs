//! The projector: NATS → facts → read tables.
//!
//! Invariants: facts, read tables, dead letters and the position commit in one transaction; only the holder of the
//! newest epoch writes; a message is applied, set aside as a dead letter, or stops the projector, never skipped;
//! every derived number is a function of the set of events, so replaying the log gives identical tables.

pub mod apply;
pub mod audit;
pub mod bookkeeping;
mod built;
pub mod changes;
mod chunk;
pub mod cli;
mod command;
pub mod consume;
pub mod dead_letters;
pub mod derive;
pub mod diff;
pub mod error;
pub mod explain;
#[cfg(feature = "parquet")]
pub mod export;
pub mod generation;
pub mod journal;
pub mod keep;
pub mod lease;
mod levels;
mod loads;
pub mod look;
pub mod message;
pub mod metrics;
pub mod policy;
pub mod prices;
pub mod progress;
pub mod promote;
pub mod quarantine;
pub mod read_tables;
pub mod rebuild;
pub mod records;
pub mod report;
pub mod resident;
pub mod retry;
mod room;
pub mod run;
pub mod sectors;
mod security;
pub mod served;
pub mod settings;
mod stale;
mod statements;
pub mod status;
mod subject;
mod table;
mod writer;
pub mod written;
