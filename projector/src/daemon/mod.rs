//! Daemon of the projector: sessions under a writer lease, with retries.

pub(crate) mod batch_writer;
pub mod lease;
mod log_identity;
pub mod run;
