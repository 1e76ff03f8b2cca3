//! The event log: how rows become messages of JetStream, and where they are.
//!
//! Invariant: a stored frame is never edited; whatever reads the log can read every frame ever written to it.

pub mod frame;
mod frame_json;
pub mod stream;
