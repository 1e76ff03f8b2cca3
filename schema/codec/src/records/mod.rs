//! Record sets, and the format in which they are stored. A set contains the observations (feed rows) of one symbol,
//! kind and source. Merging does not depend on order, duplicates or batches.

mod encoded;
mod field;
mod layout;
mod packed;
mod set;
#[cfg(test)]
mod tests;

pub use crate::error::PackedRecordsError;
pub use encoded::{EncodedField, EncodedRecord, FieldReader, FieldWriter, RecordLayout};
pub use field::Field;
pub use packed::{add_to_history, batches, currencies, read};
pub use set::{RawObservation, RecordSet};
