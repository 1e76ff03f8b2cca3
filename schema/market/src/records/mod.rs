//! The observations of one symbol, kind and source: a set that only grows, and its packed form.
//!
//! A record is JSON text here, as frames carry it; nothing is concluded from it. Merging is set union, so duplicates,
//! re-deliveries, any order and any cut into batches give the same set, and equal sets have equal bytes.

mod fields;
mod fragments;
mod packed;
mod raw;
mod set;
#[cfg(test)]
mod tests;

pub use packed::{PackedRecordsError, read};
pub use raw::RawObservation;
pub use set::{Records, newest_session};
