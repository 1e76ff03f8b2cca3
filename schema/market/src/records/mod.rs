//! The observations of one symbol, kind and source: a set that only grows, and its packed form.
//!
//! A record is JSON text here, as frames carry it; nothing is concluded from it. Merging is set union, so duplicates,
//! re-deliveries, any order and any cut into batches give the same set, and equal sets have equal bytes.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};

use crate::event::{Action, Kind, Session};
use crate::history::Observation;
use crate::record::Record;
use crate::version::Version;

mod fragments;
mod packed;
#[cfg(test)]
mod tests;

pub use packed::PackedRecordsError;

/// One row of a feed, its record still as JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawObservation {
    /// Vendor's own record id.
    pub id: Option<String>,
    /// Vendor's permanent id of the security.
    pub security_ref: Option<String>,
    pub revision: i64,
    pub retracted: bool,
    /// Microseconds since 1970, UTC.
    pub observed_at: i64,
    /// Line in the feed's file.
    pub line: u64,
    /// Id of the frame in the log.
    pub frame: [u8; 16],
    /// The record as JSON text.
    pub record: String,
}

/// Distinct observations of one symbol, kind and source, in the order of what they say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Records {
    kind: Kind,
    observations: Vec<RawObservation>,
}

impl RawObservation {
    /// What makes two rows one observation: they say the same. A security without an id is known by the vendor's
    /// permanent reference, so that a reused ticker stays two securities.
    fn compare_said(&self, other: &Self, kind: Kind) -> Ordering {
        let reference = |o: &Self| match kind {
            Kind::Security if o.id.is_none() => o.security_ref.clone(),
            _ => None,
        };
        let said = |o: &Self| (o.revision, o.retracted);
        self.id
            .cmp(&other.id)
            .then_with(|| said(self).cmp(&said(other)))
            .then_with(|| self.record.cmp(&other.record))
            .then_with(|| reference(self).cmp(&reference(other)))
    }

    /// When and where it was said.
    fn seen(&self) -> (i64, u64, [u8; 16]) {
        (self.observed_at, self.line, self.frame)
    }
}

impl Records {
    /// The set of these observations. One that was seen several times is kept as it was seen last.
    pub fn new(kind: Kind, mut observations: Vec<RawObservation>) -> Self {
        let newest_first = |a: &RawObservation, b: &RawObservation| {
            a.compare_said(b, kind)
                .then_with(|| b.seen().cmp(&a.seen()))
                .then_with(|| b.security_ref.cmp(&a.security_ref))
        };
        observations.sort_unstable_by(newest_first);
        observations.dedup_by(|a, b| a.compare_said(b, kind).is_eq());
        Self { kind, observations }
    }

    /// The union with more observations.
    pub fn merge(mut self, more: Vec<RawObservation>) -> Self {
        self.observations.extend(more);
        Self::new(self.kind, self.observations)
    }

    /// The kind of the records.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The observations, in the order of what they say.
    pub fn observations(&self) -> &[RawObservation] {
        &self.observations
    }

    /// The observations with their records read.
    pub fn read<T: Record>(&self, source: &str) -> Result<Vec<Observation<T>>, serde_json::Error> {
        self.observations.iter().map(|raw| raw.read(source)).collect()
    }
}

/// The newest session that one source's records tell of, retracted ones aside.
pub fn newest_session(records: &Records) -> Result<Option<NaiveDate>, serde_json::Error> {
    let mut newest: BTreeMap<NaiveDate, &RawObservation> = BTreeMap::new();
    for raw in records.observations() {
        let session: Session = serde_json::from_str(&raw.record)?;
        let known = newest.entry(session.date).or_insert(raw);
        if known.version() < raw.version() {
            *known = raw;
        }
    }
    Ok(newest.into_iter().rev().find(|(_, raw)| !raw.retracted).map(|(date, _)| date))
}

impl RawObservation {
    /// What it is worth against another about the same thing (R29).
    fn version(&self) -> Version<'_> {
        Version {
            revision: self.revision,
            preference: 0,
            observed_at: self.observed_at,
            retracted: self.retracted,
            line: self.line,
            frame: &self.frame,
        }
    }

    fn read<T: Record>(&self, source: &str) -> Result<Observation<T>, serde_json::Error> {
        Ok(Observation {
            source: source.to_owned(),
            id: self.id.clone(),
            security_ref: self.security_ref.clone(),
            revision: self.revision,
            action: if self.retracted { Action::Retract } else { Action::Put },
            observed_at: DateTime::<Utc>::from_timestamp_micros(self.observed_at)
                .ok_or_else(out_of_calendar)?,
            line: self.line,
            frame: hex(&self.frame),
            record: serde_json::from_str(&self.record)?,
        })
    }
}

fn out_of_calendar() -> serde_json::Error {
    serde::de::Error::custom("its observation time is outside the calendar")
}

fn hex(frame: &[u8; 16]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    frame.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
