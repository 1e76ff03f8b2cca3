//! Access of ingest to the log: reader, publisher, runs and their states.

pub(crate) mod publisher;
pub mod reader;
pub(crate) mod run_states;
