//! Client connections: what each is doing, how long it may take, and which go when there are too many.
//!
//! Invariant: a client that sends, takes or asks nothing holds nothing for long, so others always get in.

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
