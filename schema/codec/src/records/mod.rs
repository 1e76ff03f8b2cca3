//! Set of the observations of one symbol, kind and source, and its packed form. Observations are only added.
//!
//! The records in a set stay encoded until the metrics of a security are derived. Sets are merged by set union. The
//! order of observations, duplicates, and the division into batches therefore have no effect. Equal sets have equal
//! bytes.

mod encoded;
mod error;
mod field;
mod history;
mod layout;
mod packed;
mod raw;
mod set;
#[cfg(test)]
mod tests;

pub use encoded::{EncodedField, EncodedRecord, FieldReader, FieldWriter, RecordLayout};
pub use error::PackedRecordsError;
pub use field::Field;
pub use history::add_to_history;
pub use packed::{batches, read};
pub use raw::RawObservation;
pub use set::RecordSet;
