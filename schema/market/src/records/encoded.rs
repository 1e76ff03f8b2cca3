//! A record as bytes: its fields in the order of its layout, each after its length.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::error::PackedRecordsError;
use super::field::{Field, take_part, write_bytes, write_part};

/// Bytes of most records.
const USUAL_BYTES: usize = 64;
/// Present fields of most records.
const USUAL_FIELDS: usize = 12;

/// A record whose fields are stored in a fixed order.
pub trait Layout: Sized {
    /// Writes all fields.
    ///
    /// # Errors
    /// A text with the character U+0000.
    fn write(&self, out: &mut FieldWriter) -> Result<(), PackedRecordsError>;

    /// Reads all fields.
    ///
    /// # Errors
    /// Bytes that no such record has.
    fn read(fields: &mut FieldReader<'_>) -> Result<Self, PackedRecordsError>;
}

/// A record's bytes. Equal records have equal bytes; absent fields at the end have none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EncodedRecord(Box<[u8]>);

impl EncodedRecord {
    /// Encodes a record.
    ///
    /// # Errors
    /// A text with the character U+0000.
    pub fn of(record: &impl Layout) -> Result<Self, PackedRecordsError> {
        let mut fields = FieldWriter::default();
        record.write(&mut fields)?;
        Ok(Self(fields.bytes().into()))
    }

    /// A record of these fields.
    pub(super) fn join<'a>(
        fields: impl Iterator<Item = Result<&'a [u8], PackedRecordsError>>,
    ) -> Result<Self, PackedRecordsError> {
        let mut bytes = Vec::with_capacity(USUAL_BYTES);
        for field in fields {
            write_bytes(field?, &mut bytes)?;
        }
        Ok(Self(bytes.into()))
    }

    /// Bytes of each field.
    pub(super) fn fields(&self) -> impl Iterator<Item = Result<&[u8], PackedRecordsError>> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || take_part(&mut rest).transpose())
    }
}

/// Fields in the making.
#[derive(Debug, Default)]
pub struct FieldWriter {
    bytes: Vec<u8>,
    /// Length up to the last field that is present.
    present: usize,
}

impl FieldWriter {
    /// Appends a field.
    ///
    /// # Errors
    /// A text with the character U+0000.
    pub fn put(&mut self, field: &impl Field) -> Result<(), PackedRecordsError> {
        if write_part(field, &mut self.bytes)? > 0 {
            self.present = self.bytes.len();
        }
        Ok(())
    }

    /// The fields without absent ones at the end.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.present]
    }
}

/// Fields of a row: which are present, and the ordinals of these among the values of a set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RowFields {
    /// A bit for each field that is present, the first one's the lowest.
    present: u64,
    ordinals: SmallVec<[u32; USUAL_FIELDS]>,
}

impl RowFields {
    /// The fields of a record, whose ordinals are asked for.
    pub(super) fn of<'a>(
        record: &'a EncodedRecord,
        mut ordinal: impl FnMut(&'a [u8]) -> Result<u32, PackedRecordsError>,
    ) -> Result<Self, PackedRecordsError> {
        let mut fields = Self::default();
        for (field, place) in record.fields().zip(0..) {
            let field = field?;
            if !field.is_empty() {
                let bit =
                    1u64.checked_shl(place).ok_or(PackedRecordsError::Damaged("more than 64 fields"))?;
                fields.present |= bit;
                fields.ordinals.push(ordinal(field)?);
            }
        }
        Ok(fields)
    }

    /// The fields by the values of their set.
    pub(super) fn values<'a>(&'a self, values: &'a [&'a [u8]]) -> Fields<'a> {
        Fields { values, present: self.present, ordinals: self.ordinals.iter() }
    }
}

/// Bytes of a row's fields; none of one that is absent.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    values: &'a [&'a [u8]],
    present: u64,
    ordinals: std::slice::Iter<'a, u32>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<&'a [u8], PackedRecordsError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.present == 0 {
            return None;
        }
        let is_present = self.present & 1 == 1;
        self.present >>= 1;
        if !is_present {
            return Some(Ok(&[]));
        }
        let ordinal =
            self.ordinals.next().ok_or(PackedRecordsError::Damaged("a row has fewer values than fields"));
        Some(ordinal.and_then(|ordinal| value(self.values, *ordinal)))
    }
}

/// Fields that are read one after the other.
#[derive(Debug)]
pub struct FieldReader<'a>(Source<'a>);

#[derive(Debug)]
enum Source<'a> {
    Row(Fields<'a>),
    /// Fields behind each other.
    Bytes(&'a [u8]),
}

impl<'a> FieldReader<'a> {
    /// Reads a record from the fields of a row.
    pub(super) fn read_row<T: Layout>(fields: Fields<'a>) -> Result<T, PackedRecordsError> {
        Self(Source::Row(fields)).record()
    }

    /// Reads a record from its bytes.
    pub(super) fn read_all<T: Layout>(bytes: &'a [u8]) -> Result<T, PackedRecordsError> {
        Self(Source::Bytes(bytes)).record()
    }

    fn record<T: Layout>(mut self) -> Result<T, PackedRecordsError> {
        let record = T::read(&mut self)?;
        match self.next()? {
            None => Ok(record),
            Some(_) => Err(PackedRecordsError::UnknownField),
        }
    }

    /// The next field; absent when the record was written without it.
    ///
    /// # Errors
    /// Bytes that no such field has.
    pub fn take<T: Field>(&mut self) -> Result<T, PackedRecordsError> {
        T::read(self.next()?.unwrap_or_default())
    }

    fn next(&mut self) -> Result<Option<&'a [u8]>, PackedRecordsError> {
        match &mut self.0 {
            Source::Bytes(rest) => take_part(rest),
            Source::Row(fields) => fields.next().transpose(),
        }
    }
}

/// The value of an ordinal.
pub(super) fn value<T: Copy>(values: &[T], ordinal: u32) -> Result<T, PackedRecordsError> {
    let value = usize::try_from(ordinal).ok().and_then(|ordinal| values.get(ordinal));
    value.copied().ok_or(PackedRecordsError::Damaged("a row names what is not there"))
}
