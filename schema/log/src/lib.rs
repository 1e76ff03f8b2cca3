//! Event log: encoding of rows as JetStream messages, and the stream itself.
//!
//! Invariant: a stored batch is never edited. Every reader can decode every batch that was ever written.

pub mod archive;
mod body;
mod codec;
mod columns;
mod envelope;
mod error;
mod id;
mod limits;
pub mod message;
pub mod record_batch;
pub mod replica;
pub mod restore;
pub mod sequence;
pub mod shared;
pub mod stream;
