//! HTTP server: listener, router and monitoring source.

pub(crate) mod monitoring;
pub(crate) mod router;
pub(crate) mod serve;
