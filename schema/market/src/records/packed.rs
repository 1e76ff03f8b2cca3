//! The bytes of a set of observations: dictionaries of what rows share, then the rows, in postcard.
//!
//! The first byte is the version of the form; `store/generation/records.sql` reads the same form for SQL users.

use std::collections::HashMap;
use std::hash::Hash;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::fields::{Fields, Value};
use super::fragments::{Fragment, join, split};
use super::raw::RawObservation;
use super::set::Records;
use crate::event::Kind;
use crate::observation::Observation;
use crate::record::Record;

/// The form that is written.
const VERSION: u8 = 1;
/// Fields of a record, seldom more.
const USUAL_FIELDS: usize = 14;
/// Bytes of a row, never fewer: one for each of its fields.
const LEAST_ROW: usize = 9;
/// Bytes of a record's text, seldom more.
const RECORD: usize = 256;

/// Why packed records cannot be written or read.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum PackedRecordsError {
    #[error("packed records are of version {0}, which this program does not know")]
    UnknownVersion(u8),
    #[error("packed records are damaged: {0}")]
    Damaged(&'static str),
    #[error("packed records are damaged: {0}")]
    Codec(#[from] postcard::Error),
    #[error("a record is none of its kind: {0}")]
    Record(#[from] serde_json::Error),
}

/// Version 1: what rows share, then a list of rows. Numbers in rows are places in these lists.
#[derive(Serialize, Deserialize)]
struct Shared<'a> {
    frames: Vec<[u8; 16]>,
    /// Observation times, microseconds since 1970.
    moments: Vec<i64>,
    /// Field names of the records.
    #[serde(borrow)]
    shapes: Vec<Vec<&'a str>>,
    #[serde(borrow)]
    fragments: Vec<Fragment<'a>>,
}

#[derive(Serialize, Deserialize)]
struct Row<'a> {
    id: Option<&'a str>,
    security_ref: Option<&'a str>,
    revision: i64,
    retracted: bool,
    moment: u32,
    line: u64,
    frame: u32,
    shape: u32,
    values: SmallVec<[u32; USUAL_FIELDS]>,
}

/// Distinct values in order of first use.
struct Dictionary<T> {
    values: Vec<T>,
    places: HashMap<T, u32>,
}

impl<T: Clone + Eq + Hash> Dictionary<T> {
    fn new() -> Self {
        Self { values: Vec::new(), places: HashMap::new() }
    }

    fn place(&mut self, value: T) -> Result<u32, PackedRecordsError> {
        if let Some(place) = self.places.get(&value) {
            return Ok(*place);
        }
        let place = u32::try_from(self.values.len());
        let place = place.map_err(|_| PackedRecordsError::Damaged("more than 2^32 values"))?;
        self.values.push(value.clone());
        self.places.insert(value, place);
        Ok(place)
    }
}

impl Records {
    /// Packs the set; equal sets have equal bytes.
    pub fn pack(&self) -> Result<Vec<u8>, PackedRecordsError> {
        let (mut frames, mut moments) = (Dictionary::new(), Dictionary::new());
        let (mut shapes, mut fragments) = (Dictionary::new(), Dictionary::new());
        let mut rows = Vec::with_capacity(self.observations.len());
        for raw in &self.observations {
            let (names, values) = split(&raw.record);
            rows.push(Row {
                id: raw.id.as_deref(),
                security_ref: raw.security_ref.as_deref(),
                revision: raw.revision,
                retracted: raw.retracted,
                moment: moments.place(raw.observed_at)?,
                line: raw.line,
                frame: frames.place(raw.frame)?,
                shape: shapes.place(names)?,
                values: values.into_iter().map(|value| fragments.place(value)).collect::<Result<_, _>>()?,
            });
        }
        let shared = Shared {
            frames: frames.values,
            moments: moments.values,
            shapes: shapes.values,
            fragments: fragments.values,
        };
        Ok(postcard::to_extend(&(shared, rows), vec![VERSION])?)
    }

    /// Reads packed records of a kind.
    pub fn unpack(kind: Kind, bytes: &[u8]) -> Result<Self, PackedRecordsError> {
        let (shared, rows) = open(bytes)?;
        let observation = |row: Result<Row<'_>, PackedRecordsError>| {
            let row = row?;
            let (mut record, (names, values)) = (String::with_capacity(RECORD), shared.fields(&row)?);
            join(names, values, &mut record);
            shared.observation(&row, record)
        };
        Ok(Self { kind, observations: rows.map(observation).collect::<Result<_, _>>()? })
    }
}

/// Reads what a source observed of one kind from its packed records.
pub fn read<T: Record>(source: &str, bytes: &[u8]) -> Result<Vec<Observation<T>>, PackedRecordsError> {
    let (shared, rows) = open(bytes)?;
    let fragments: Vec<Value<'_>> = shared.fragments.iter().map(Value::from).collect();
    let mut values = Vec::with_capacity(USUAL_FIELDS);
    // `collect` into a `Result` makes no room beforehand, and moves what it has with each doubling.
    let mut read = Vec::with_capacity(rows.at_most());
    for row in rows {
        let row = row?;
        let names = at(&shared.shapes, row.shape)?;
        let record = if names.is_empty() {
            shared.whole(&row)?
        } else {
            values.clear();
            for place in &row.values {
                values.push(*at(&fragments, *place)?);
            }
            T::deserialize(Fields::new(names, &values))?
        };
        read.push(shared.observation(&row, String::new())?.said(source, record)?);
    }
    Ok(read)
}

/// What packed rows share, and the rows.
fn open(bytes: &[u8]) -> Result<(Shared<'_>, Rows<'_>), PackedRecordsError> {
    let (version, body) = bytes.split_first().ok_or(PackedRecordsError::Damaged("they are empty"))?;
    if *version != VERSION {
        return Err(PackedRecordsError::UnknownVersion(*version));
    }
    let (shared, rest) = postcard::take_from_bytes(body)?;
    let (left, rest) = postcard::take_from_bytes(rest)?;
    Ok((shared, Rows { left, rest }))
}

/// Rows that are read one after the other.
struct Rows<'a> {
    left: usize,
    rest: &'a [u8],
}

impl Rows<'_> {
    /// No more rows than these are left, whatever the bytes say.
    fn at_most(&self) -> usize {
        self.left.min(self.rest.len() / LEAST_ROW)
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = Result<Row<'a>, PackedRecordsError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        match postcard::take_from_bytes(self.rest) {
            Ok((row, rest)) => {
                self.rest = rest;
                Some(Ok(row))
            }
            Err(error) => {
                self.left = 0;
                Some(Err(error.into()))
            }
        }
    }
}

impl<'a> Shared<'a> {
    /// Names and values of a row's fields; a text that is no plain object is one value without a name.
    fn fields(
        &self,
        row: &Row<'_>,
    ) -> Result<(&[&'a str], impl Iterator<Item = Fragment<'a>>), PackedRecordsError> {
        row.values.iter().try_for_each(|place| at(&self.fragments, *place).map(drop))?;
        let values = row.values.iter().filter_map(|place| at(&self.fragments, *place).ok().copied());
        Ok((at(&self.shapes, row.shape)?, values))
    }

    /// The record of a row that has one text and no names.
    fn whole<T: Record>(&self, row: &Row<'_>) -> Result<T, PackedRecordsError> {
        let (_, mut values) = self.fields(row)?;
        match (values.next(), values.next()) {
            (Some(Fragment::Json(text)), None) => Ok(serde_json::from_str(text)?),
            _ => Err(PackedRecordsError::Damaged("a record has values without names")),
        }
    }

    /// A row with its record's text.
    fn observation(&self, row: &Row<'_>, record: String) -> Result<RawObservation, PackedRecordsError> {
        Ok(RawObservation {
            id: row.id.map(str::to_owned),
            security_ref: row.security_ref.map(str::to_owned),
            revision: row.revision,
            retracted: row.retracted,
            observed_at: *at(&self.moments, row.moment)?,
            line: row.line,
            frame: *at(&self.frames, row.frame)?,
            record,
        })
    }
}

fn at<T>(values: &[T], place: u32) -> Result<&T, PackedRecordsError> {
    let value = usize::try_from(place).ok().and_then(|place| values.get(place));
    value.ok_or(PackedRecordsError::Damaged("a row names what is not there"))
}
