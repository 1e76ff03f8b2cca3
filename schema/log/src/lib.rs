//! The event log: how rows become messages of JetStream, and where they are.
//!
//! Invariant: a stored frame is never edited; whatever reads the log can read every frame ever written to it.

mod body;
mod columns;
pub mod frame;
pub mod sequence;
pub mod stream;
mod upcast;
