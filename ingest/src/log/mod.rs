//! Access of ingest to the log: reader, publisher and run status.

pub(crate) mod publisher;
pub mod reader;
pub(crate) mod run_states;
