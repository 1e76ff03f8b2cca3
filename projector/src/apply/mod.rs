//! Applies the messages of the log to the facts (the tables with the loaded rows).

pub mod batch;
pub mod consumer;
pub mod dead_letters;
pub mod retry;
pub mod run_records;
pub(crate) mod touched_rows;
