//! The observations of one symbol, kind and source: a set that only grows, and its packed form.
//!
//! A record is bytes here, typed again when a security is derived; nothing is concluded from it. Merging is set union, so
//! duplicates, re-deliveries, any order and any cut into batches give the same set, and equal sets have equal bytes.

mod encoded;
mod error;
mod field;
mod layout;
mod packed;
mod raw;
mod set;
#[cfg(test)]
mod tests;

pub use encoded::{EncodedRecord, FieldReader, FieldWriter, Layout};
pub use error::PackedRecordsError;
pub use field::Field;
pub use packed::read;
pub use raw::RawObservation;
pub use set::{Records, newest_session};
