//! Monitoring of the projector: metrics of batches, and gauges that a task polls from the servers.

pub(crate) mod gauges;
pub mod metrics;
pub mod poller;
