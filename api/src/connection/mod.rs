//! Client connections: caps, write timeout, and the id of a request.
//!
//! Invariant: an idle or slow client occupies resources only for a limited time. hyper limits the time until the head of
//! a request is complete, and the size of the head.

mod registry;
pub(crate) mod request_id;
mod write_timeout;

pub(crate) use registry::{ClientConnection, ConnectionCaps, ConnectionRegistry};
pub(crate) use write_timeout::WriteTimeout;
