//! Monitoring: counters, gauges and the poller that reads gauges from Postgres and the log.

pub(crate) mod gauges;
pub mod metrics;
pub mod poller;
