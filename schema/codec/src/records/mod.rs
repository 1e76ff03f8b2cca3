//! Record sets, and the format in which they are stored. A set contains the observations (feed rows) of one symbol,
//! kind and source. Merging does not depend on order, duplicates or batches.

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
