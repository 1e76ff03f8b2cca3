//! Record sets, and the format in which they are stored. A record set contains all observations (feed rows) of one
//! symbol, kind and source.
//!
//! Sets are merged by set union. The result does not depend on the order of the observations, on duplicates, or on the
//! division into batches. Equal sets have equal bytes. The records in a set stay encoded until the metrics of a
//! security are derived.

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
