//! Module index: sessions and retries in `run.rs`, the writer lease in `lease.rs`, transactions in
//! `batch_writer.rs`.

pub(crate) mod batch_writer;
pub mod lease;
mod log_identity;
pub mod run;
