//! Packed set of observations: one version byte, then postcard's encoding. Rows refer to batch ids, times and field
//! values by index in lists of distinct values. The records of a security are decoded into its history.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use chrono::{DateTime, NaiveDate};
use compact_str::CompactString;
use market::event::{
    Action, Decision, Dividend, DividendEvidence, Etf, EventRecord, Fundamentals, HoldingSnapshot, Kind,
    Security, Split,
};
use market::history::{History, Observation};
use market::metrics::currency::Currency;
use serde::{Deserialize, Serialize};

use super::encoded::{EncodedRecord, FieldReader, RecordLayout, RowFields, value_at};
use super::set::{RawObservation, RecordSet};
use crate::PackedRecordsError;

const VERSION: u8 = 1;

/// Packed set of observations: lists of distinct values, and one row per observation. A row refers to a value by its
/// index in the list.
#[derive(Serialize, Deserialize)]
struct Packed<'a> {
    frames: Vec<[u8; 16]>,
    /// Distinct observation times of all observations, in microseconds since 1970.
    times: Vec<i64>,
    /// Distinct encoded fields of all observations.
    #[serde(borrow)]
    values: Vec<&'a [u8]>,
    #[serde(borrow)]
    rows: Vec<Row<'a>>,
}

#[derive(Serialize, Deserialize)]
struct Row<'a> {
    id: Option<&'a str>,
    security_ref: Option<&'a str>,
    revision: i64,
    retracted: bool,
    time: u32,
    line: u64,
    frame: u32,
    fields: RowFields,
}

/// List of distinct values, in the order in which they were first added.
struct Dictionary<T> {
    values: Vec<T>,
    ordinals: HashMap<T, u32>,
}

impl<T: Copy + Eq + Hash> Dictionary<T> {
    fn new() -> Self {
        Self { values: Vec::new(), ordinals: HashMap::new() }
    }

    fn ordinal(&mut self, value: T) -> Result<u32, PackedRecordsError> {
        if let Some(ordinal) = self.ordinals.get(&value) {
            return Ok(*ordinal);
        }
        let ordinal = u32::try_from(self.values.len());
        let ordinal = ordinal.map_err(|_| PackedRecordsError::Damaged("more than 2^32 values"))?;
        self.values.push(value);
        self.ordinals.insert(value, ordinal);
        Ok(ordinal)
    }
}

impl RecordSet {
    /// Packs the set. Equal sets have equal bytes.
    ///
    /// # Errors
    /// The set has more than 2^32 distinct values.
    pub fn pack(&self) -> Result<Vec<u8>, PackedRecordsError> {
        debug_assert!(self.is_in_order(), "equal sets have equal bytes only in the order of a set");
        let (mut frames, mut times) = (Dictionary::new(), Dictionary::new());
        let (mut values, mut rows) = (Dictionary::new(), Vec::with_capacity(self.observations.len()));
        for raw in &self.observations {
            rows.push(Row {
                id: raw.id.as_deref(),
                security_ref: raw.security_ref.as_deref(),
                revision: raw.revision,
                retracted: raw.retracted,
                time: times.ordinal(raw.observed_at)?,
                line: raw.line,
                frame: frames.ordinal(raw.frame)?,
                fields: RowFields::from_record(&raw.record, |field| values.ordinal(field))?,
            });
        }
        let packed = Packed { frames: frames.values, times: times.values, values: values.values, rows };
        Ok(postcard::to_extend(&packed, vec![VERSION])?)
    }

    /// Unpacks a set of observations of the kind `kind`.
    ///
    /// # Errors
    /// The bytes are damaged, or were written by a newer version.
    pub fn unpack(kind: Kind, bytes: &[u8]) -> Result<Self, PackedRecordsError> {
        let packed = open(bytes)?;
        let mut observations = Vec::with_capacity(packed.rows.len());
        for row in &packed.rows {
            observations.push(RawObservation {
                id: row.id.map(str::to_owned),
                security_ref: row.security_ref.map(str::to_owned),
                revision: row.revision,
                retracted: row.retracted,
                observed_at: value_at(&packed.times, row.time)?,
                line: row.line,
                frame: value_at(&packed.frames, row.frame)?,
                record: EncodedRecord::join(row.fields.values(&packed.values))?,
            });
        }
        Ok(Self { kind, observations })
    }
}

/// Decodes the observations in a packed set. `source` is the source of all these observations.
///
/// # Errors
/// The bytes are damaged, or were written by a newer version.
pub fn read<T: RecordLayout>(source: &str, bytes: &[u8]) -> Result<Vec<Observation<T>>, PackedRecordsError> {
    let packed = open(bytes)?;
    let source = CompactString::from(source);
    let observation = |row: &Row<'_>| {
        let observed_at = DateTime::from_timestamp_micros(value_at(&packed.times, row.time)?);
        Ok(Observation {
            source: source.clone(),
            id: row.id.map(str::to_owned),
            security_ref: row.security_ref.map(str::to_owned),
            revision: row.revision,
            action: if row.retracted { Action::Retract } else { Action::Put },
            observed_at: observed_at
                .ok_or(PackedRecordsError::Damaged("an observation time is outside the calendar"))?,
            line: row.line,
            frame: value_at(&packed.frames, row.frame)?,
            record: FieldReader::read_record(row.fields.values(&packed.values))?,
        })
    };
    packed.rows.iter().map(observation).collect()
}

/// ISO 4217 codes of the currencies in a packed set: of the prices of a security, of dividends and of reports.
///
/// # Errors
/// The bytes are damaged, or were written by a newer version.
pub fn currencies(kind: Kind, source: &str, bytes: &[u8]) -> Result<BTreeSet<String>, PackedRecordsError> {
    let mut found: BTreeSet<String> = match kind {
        Kind::Security => {
            read::<Security>(source, bytes)?.into_iter().map(|row| row.record.currency).collect()
        }
        Kind::Dividend => {
            read::<Dividend>(source, bytes)?.into_iter().map(|row| row.record.currency.into()).collect()
        }
        Kind::Evidence => read::<DividendEvidence>(source, bytes)?
            .into_iter()
            .filter_map(|row| Some(Currency::parse(row.record.price_unit.as_deref()?)?.code))
            .collect(),
        Kind::Fundamentals => read::<Fundamentals>(source, bytes)?
            .into_iter()
            .filter_map(|row| row.record.reported_currency)
            .collect(),
        _ => BTreeSet::new(),
    };
    found.remove("");
    Ok(found)
}

/// Ids of the record batches that contained the observations of a packed set. Every id occurs once.
///
/// # Errors
/// The bytes are damaged, or were written by a newer version.
pub fn batches(bytes: &[u8]) -> Result<Vec<[u8; 16]>, PackedRecordsError> {
    Ok(open(bytes)?.frames)
}

fn open(bytes: &[u8]) -> Result<Packed<'_>, PackedRecordsError> {
    match bytes.split_first() {
        None => Err(PackedRecordsError::Damaged("they are empty")),
        Some((&VERSION, packed)) => Ok(postcard::from_bytes(packed)?),
        Some((version, _)) => Err(PackedRecordsError::UnknownVersion(*version)),
    }
}

/// Generates `add_to_history` from pairs of a record type and its list in `History`.
macro_rules! history_lists {
    ($($record:ident => $list:ident),* $(,)?) => {
        /// Decodes packed records and adds them to `history`. Drops a record if the security did not have the symbol on
        /// its date (`owns`). Ignores kinds without a list in `History`.
        ///
        /// # Errors
        /// The bytes are damaged, or were written by a newer version.
        pub fn add_to_history(
            history: &mut History,
            kind: Kind,
            source: &str,
            packed: &[u8],
            owns: impl Fn(NaiveDate) -> bool,
        ) -> Result<(), PackedRecordsError> {
            $(if kind == $record::KIND {
                let mut said = read::<$record>(source, packed)?;
                said.retain(|observation| observation.record.date().is_none_or(&owns));
                history.$list.append(&mut said);
            })*
            Ok(())
        }
    };
}

history_lists! {
    Dividend => dividends,
    Split => splits,
    Fundamentals => fundamentals,
    Etf => etf,
    HoldingSnapshot => holdings,
    Decision => decisions,
    DividendEvidence => evidence,
}
