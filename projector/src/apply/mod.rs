//! Applying log messages: one batch in one transaction, with dead letters and run records.

pub mod batch;
pub mod consumer;
pub mod dead_letters;
pub(crate) mod in_flight_loads;
pub mod message;
pub mod retry;
pub mod run_records;
