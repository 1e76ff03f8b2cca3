//! Event log: encoding of rows as JetStream messages, and the JetStream stream.
//!
//! Invariant: a stored record batch is never edited. A reader can decode all batches that were written by its own
//! program version or an older one.

pub mod archive;
mod body;
mod envelope;
pub mod message;
pub mod record_batch;
pub mod sequence;
pub mod stream;
pub mod write_failure;
