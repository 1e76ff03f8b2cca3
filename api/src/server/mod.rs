//! HTTP server: listener, router and monitoring source.

pub(crate) mod metrics_source;
pub(crate) mod router;
pub(crate) mod serve;
