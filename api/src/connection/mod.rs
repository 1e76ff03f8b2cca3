//! Client connections: progress, timeouts and eviction.
//!
//! Invariant: an idle or slow client occupies resources only for a limited time.

mod client_connection;
mod monitored_stream;
mod protocol_error;
mod registry;
pub(crate) mod request_id;

pub(crate) use client_connection::{ClientConnection, ClientTimeouts};
pub(crate) use monitored_stream::MonitoredStream;
pub(crate) use registry::{ConnectionCaps, ConnectionRegistry};
