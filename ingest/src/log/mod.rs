//! The log as ingest uses it: reader, publisher and run status.

pub(crate) mod publisher;
pub mod reader;
pub(crate) mod run_status;
