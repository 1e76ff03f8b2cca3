//! Monitoring of the projector: counters of batches, gauges, and the task that updates the gauges.

pub(crate) mod gauges;
pub mod metrics;
pub mod poller;
