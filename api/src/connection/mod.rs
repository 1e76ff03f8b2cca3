//! Client connections: progress, timeouts and eviction.
//!
//! Invariant: an idle or slow client occupies resources only for a limited time, so new clients can always connect.

mod guarded;
mod progress;
mod protocol_error;
mod registry;
pub(crate) mod request_id;
mod tracked;

pub(crate) use guarded::Guarded;
pub(crate) use progress::{Connection, Patience};
pub(crate) use registry::{Caps, Registry};
pub(crate) use tracked::Tracked;
