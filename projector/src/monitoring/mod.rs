//! Module index: metrics of batches in `metrics.rs`, gauges in `gauges.rs`, their poller in `poller.rs`.

pub(crate) mod gauges;
pub mod metrics;
pub mod poller;
