//! Encoding of a field's value as bytes.
//!
//! An absent value is encoded as an empty byte string. A field that did not exist when the record was written is
//! therefore read as absent.

use chrono::{Datelike, NaiveDate};
use compact_str::CompactString;
use rust_decimal::Decimal;

use crate::PackedRecordsError;
use market::event::{
    DecisionVerdict, DividendType, Frequency, Kind, ListingStatus, SecurityType, ShareBasis,
};
use market::symbol::Symbol;

/// Encoding of the empty text. An empty byte string cannot encode it, because that already means an absent text. The
/// byte 0xff never occurs in UTF-8.
const EMPTY_TEXT: &[u8] = &[0xff];

/// Value of a record's field, encoded as bytes.
pub trait Field: Sized {
    /// Appends the value's bytes.
    ///
    /// # Errors
    /// The text contains the character U+0000.
    fn write(&self, bytes: &mut Vec<u8>) -> Result<(), PackedRecordsError>;

    /// Decodes a value. `bytes` must be exactly the bytes of this value.
    ///
    /// # Errors
    /// The bytes are not an encoded value.
    fn read(bytes: &[u8]) -> Result<Self, PackedRecordsError>;
}

impl<T: Field> Field for Option<T> {
    fn write(&self, bytes: &mut Vec<u8>) -> Result<(), PackedRecordsError> {
        self.as_ref().map_or(Ok(()), |value| value.write(bytes))
    }

    fn read(bytes: &[u8]) -> Result<Self, PackedRecordsError> {
        if bytes.is_empty() { Ok(None) } else { T::read(bytes).map(Some) }
    }
}

/// A list is encoded as a sequence of items. Before each item, the length of the encoded item is stored.
impl<T: Field> Field for Vec<T> {
    fn write(&self, bytes: &mut Vec<u8>) -> Result<(), PackedRecordsError> {
        self.iter().try_for_each(|item| write_part(item, bytes).map(drop))
    }

    fn read(mut bytes: &[u8]) -> Result<Self, PackedRecordsError> {
        let mut items = Self::new();
        while let Some(item) = next_part(&mut bytes)? {
            items.push(T::read(item)?);
        }
        Ok(items)
    }
}

/// Values of up to this length, in bytes, have a length prefix of one byte.
const SHORT: usize = 0x7f;
/// Maximum length of an encoded number, in bytes.
const NUMBER: usize = 24;

/// Appends the length of an encoded value, then the value. Returns the length of the encoded value, in bytes.
pub(super) fn write_part(value: &impl Field, bytes: &mut Vec<u8>) -> Result<usize, PackedRecordsError> {
    let at = bytes.len();
    bytes.push(0);
    value.write(bytes)?;
    let length = bytes.len() - at - 1;
    if length <= SHORT {
        bytes[at] = length.to_le_bytes()[0];
    } else {
        let mut room = [0; NUMBER];
        bytes.splice(at..=at, postcard::to_slice(&length, &mut room)?.iter().copied());
    }
    Ok(length)
}

/// Appends the length of an encoded value, then its bytes.
pub(super) fn write_bytes(part: &[u8], bytes: &mut Vec<u8>) -> Result<(), PackedRecordsError> {
    append(bytes, &part.len())?;
    bytes.extend_from_slice(part);
    Ok(())
}

/// Removes the first value and its length prefix from the front of `bytes`. Returns the value's bytes, or `None` if
/// `bytes` is empty.
pub(super) fn next_part<'a>(bytes: &mut &'a [u8]) -> Result<Option<&'a [u8]>, PackedRecordsError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (part, rest) = postcard::take_from_bytes(bytes)?;
    *bytes = rest;
    Ok(Some(part))
}

/// Appends a number in postcard's encoding.
fn append(bytes: &mut Vec<u8>, number: &impl serde::Serialize) -> Result<(), PackedRecordsError> {
    let mut room = [0; NUMBER];
    bytes.extend_from_slice(postcard::to_slice(number, &mut room)?);
    Ok(())
}

fn write_text(text: &str, bytes: &mut Vec<u8>) -> Result<(), PackedRecordsError> {
    if text.contains('\0') {
        return Err(PackedRecordsError::NulCharacter);
    }
    bytes.extend_from_slice(if text.is_empty() { EMPTY_TEXT } else { text.as_bytes() });
    Ok(())
}

fn read_text(bytes: &[u8]) -> Result<&str, PackedRecordsError> {
    match bytes {
        [] => Err(PackedRecordsError::Damaged("a text is missing")),
        EMPTY_TEXT => Ok(""),
        bytes => std::str::from_utf8(bytes).map_err(|_| PackedRecordsError::Damaged("a text is not UTF-8")),
    }
}

/// Implements [`Field`] for strings, and for types that are stored as text, such as enums.
macro_rules! texts {
    ($($name:ident: $as_str:ident, $read:expr;)*) => {
        $(impl Field for $name {
            fn write(&self, bytes: &mut Vec<u8>) -> Result<(), PackedRecordsError> {
                write_text(self.$as_str(), bytes)
            }

            fn read(bytes: &[u8]) -> Result<Self, PackedRecordsError> {
                let read = $read;
                read(read_text(bytes)?)
            }
        })*
    };
}

fn word<T: std::str::FromStr>(text: &str) -> Result<T, PackedRecordsError> {
    text.parse().map_err(|_| PackedRecordsError::Damaged("a word is unknown"))
}

texts! {
    String: as_str, |text: &str| Ok(text.to_owned());
    CompactString: as_str, |text: &str| Ok(text.into());
    Symbol: as_str, |text: &str| Ok(Self::from_stored(text));
    ShareBasis: as_str, word::<ShareBasis>;
    DividendType: as_str, word::<DividendType>;
    Frequency: as_str, word::<Frequency>;
    Kind: as_str, word::<Kind>;
    ListingStatus: as_str, word::<ListingStatus>;
    SecurityType: as_str, word::<SecurityType>;
    DecisionVerdict: as_str, word::<DecisionVerdict>;
}

/// Implements [`Field`] for types that are stored as a number in postcard's format. Reading fails if bytes remain after
/// the number.
macro_rules! numbers {
    ($($name:ty as $number:ty: $write:expr, $read:expr;)*) => {
        $(impl Field for $name {
            fn write(&self, bytes: &mut Vec<u8>) -> Result<(), PackedRecordsError> {
                let number: fn(&$name) -> $number = $write;
                append(bytes, &number(self))
            }

            fn read(bytes: &[u8]) -> Result<Self, PackedRecordsError> {
                let value: fn($number) -> Option<$name> = $read;
                match postcard::take_from_bytes(bytes)? {
                    (number, []) => value(number).ok_or(PackedRecordsError::Damaged("a number is out of range")),
                    _ => Err(PackedRecordsError::Damaged("a number has more bytes than it needs")),
                }
            }
        })*
    };
}

numbers! {
    bool as bool: |value| *value, Some;
    i32 as i32: |value| *value, Some;
    i64 as i64: |value| *value, Some;
    // Number of days since 0001-01-01, which is day 1.
    NaiveDate as i32: |date| date.num_days_from_ce(), NaiveDate::from_num_days_from_ce_opt;
    // Number of decimal places, then the digits.
    Decimal as (u32, i128):
        |value| (value.scale(), value.mantissa()),
        |(scale, digits)| Decimal::try_from_i128_with_scale(digits, scale).ok();
}
