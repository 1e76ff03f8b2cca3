//! Application of log messages to the facts.

pub mod batch;
pub mod consumer;
pub mod dead_letters;
pub(crate) mod in_flight_loads;
pub mod retry;
pub mod run_records;
