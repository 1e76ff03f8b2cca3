//! The bytes of a set of observations: dictionaries of what rows share, then the rows, in postcard.
//!
//! The first byte is the version of the form; `store/generation/records.sql` reads the same form for SQL users.

use std::collections::HashMap;
use std::hash::Hash;

use chrono::DateTime;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::fields::{Fields, Value};
use super::fragments::{Fragment, join, split};
use super::raw::RawObservation;
use super::set::Records;
use crate::event::{Action, Kind};
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

/// A row, which the places of its record's values follow.
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
}

/// Places of a row's values.
type Places = SmallVec<[u32; USUAL_FIELDS]>;

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
            let row = Row {
                id: raw.id.as_deref(),
                security_ref: raw.security_ref.as_deref(),
                revision: raw.revision,
                retracted: raw.retracted,
                moment: moments.place(raw.observed_at)?,
                line: raw.line,
                frame: frames.place(raw.frame)?,
                shape: shapes.place(names)?,
            };
            let places = values.into_iter().map(|value| fragments.place(value));
            rows.push((row, places.collect::<Result<Places, _>>()?));
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
        let (shared, mut rows) = open(bytes)?;
        let (mut values, mut observations) = (Vec::new(), Vec::with_capacity(rows.at_most()));
        while let Some(row) = rows.next(&shared.fragments, &mut values)? {
            let mut record = String::with_capacity(RECORD);
            join(at(&shared.shapes, row.shape)?, values.iter().copied(), &mut record);
            observations.push(shared.observation(&row, record)?);
        }
        Ok(Self { kind, observations })
    }
}

/// Reads what a source observed of one kind from its packed records.
pub fn read<T: Record>(source: &str, bytes: &[u8]) -> Result<Vec<Observation<T>>, PackedRecordsError> {
    let (shared, mut rows) = open(bytes)?;
    let fragments: Vec<Value<'_>> = shared.fragments.iter().map(Value::from).collect();
    let source = CompactString::from(source);
    let (mut values, mut read) = (Vec::with_capacity(USUAL_FIELDS), Vec::with_capacity(rows.at_most()));
    while let Some(row) = rows.next(&fragments, &mut values)? {
        let names = at(&shared.shapes, row.shape)?;
        let observed_at = DateTime::from_timestamp_micros(*at(&shared.moments, row.moment)?);
        read.push(Observation {
            source: source.clone(),
            id: row.id.map(str::to_owned),
            security_ref: row.security_ref.map(str::to_owned),
            revision: row.revision,
            action: if row.retracted { Action::Retract } else { Action::Put },
            observed_at: observed_at
                .ok_or(PackedRecordsError::Damaged("an observation time is outside the calendar"))?,
            line: row.line,
            frame: *at(&shared.frames, row.frame)?,
            record: if names.is_empty() {
                whole(&values)?
            } else {
                T::deserialize(Fields::new(names, &values))?
            },
        });
    }
    Ok(read)
}

/// The record of a row that has one text and no names.
fn whole<T: Record>(values: &[Value<'_>]) -> Result<T, PackedRecordsError> {
    match values {
        [Value::Json(text)] => Ok(serde_json::from_str(text)?),
        _ => Err(PackedRecordsError::Damaged("a record has values without names")),
    }
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

impl<'a> Rows<'a> {
    /// No more rows than these are left, whatever the bytes say.
    fn at_most(&self) -> usize {
        self.left.min(self.rest.len() / LEAST_ROW)
    }

    /// The next row, and of its record the values, each from its place among all.
    fn next<V: Copy>(
        &mut self,
        all: &[V],
        values: &mut Vec<V>,
    ) -> Result<Option<Row<'a>>, PackedRecordsError> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        let ((row, count), mut rest): ((Row<'a>, usize), _) = postcard::take_from_bytes(self.rest)?;
        values.clear();
        for _ in 0..count {
            let place;
            (place, rest) = postcard::take_from_bytes(rest)?;
            values.push(*at(all, place)?);
        }
        (self.left, self.rest) = (left, rest);
        Ok(Some(row))
    }
}

impl Shared<'_> {
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
