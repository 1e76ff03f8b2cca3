//! The event log: how rows become messages of JetStream, and where they are.
//!
//! Invariant: a stored frame is never edited; whatever reads the log can read every frame ever written to it.

pub mod archive;
mod body;
mod codec;
mod columns;
mod envelope;
mod error;
pub mod frame;
mod id;
mod limits;
pub mod replica;
pub mod restore;
pub mod sequence;
pub mod shared;
pub mod stream;
