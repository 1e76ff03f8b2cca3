//! HTTP server: listener, router, probes, and the source of operational metrics.

mod databases;
pub(crate) mod router;
pub(crate) mod serve;
