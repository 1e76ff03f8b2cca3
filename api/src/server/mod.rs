//! HTTP server: listener, router and monitoring source.

pub(crate) mod metrics_source;
mod probes;
pub(crate) mod router;
pub(crate) mod serve;
