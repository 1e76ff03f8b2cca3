//! Module index: transactions in `batch.rs`, the log reader in `consumer.rs`, refused rows in `dead_letters.rs`
//! and `retry.rs`.

pub mod batch;
pub mod consumer;
pub mod dead_letters;
pub(crate) mod in_flight_loads;
pub mod retry;
pub mod run_records;
