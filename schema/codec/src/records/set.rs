//! Set of distinct observations. An observation has an encoded record, as the facts tables store it.

use std::cmp::Ordering;
use std::collections::HashSet;

use market::event::Kind;

use super::encoded::EncodedRecord;
use crate::PackedRecordsError;

/// Distinct observations of one symbol, kind and source, sorted by content. The set does not store the symbol and the
/// source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSet {
    pub(super) kind: Kind,
    pub(super) observations: Vec<RawObservation>,
}

impl RecordSet {
    /// Builds a set. If several observations have equal content, the set contains only the newest of them. Observations
    /// are compared by observation time, then by line, then by batch id.
    pub fn new(kind: Kind, observations: Vec<RawObservation>) -> Self {
        Self::separate(kind, observations).0
    }

    /// Adds observations to the set. If several observations have equal content, the new set contains only the newest
    /// of them, as in [`RecordSet::new`].
    pub fn merge(mut self, more: Vec<RawObservation>) -> Self {
        self.observations.extend(more);
        Self::new(self.kind, self.observations)
    }

    /// Divides observations into the set that counts and all others. The set that counts is built from the observations
    /// for whose record batches `is_visible` returns true, without records that never had the symbol `symbol`. The
    /// others form several sets, because a set cannot contain equal content twice.
    ///
    /// # Errors
    /// A record is damaged.
    pub fn divide(
        kind: Kind,
        symbol: &str,
        observations: Vec<RawObservation>,
        is_visible: impl Fn(&[u8; 16]) -> bool,
    ) -> Result<(Self, Vec<Self>), PackedRecordsError> {
        let (visible, mut others): (Vec<_>, Vec<_>) =
            observations.into_iter().partition(|observation| is_visible(&observation.frame));
        let (union, repeated) = Self::separate(kind, visible);
        let (own, foreign) = union.separate_symbol(symbol)?;
        others.extend(repeated.into_iter().chain(foreign));
        Ok((own, Self::layers(kind, others)))
    }

    /// Distributes observations over as few sets as possible.
    fn layers(kind: Kind, mut observations: Vec<RawObservation>) -> Vec<Self> {
        let mut layers = Vec::new();
        while !observations.is_empty() {
            let (distinct, rest) = Self::separate(kind, observations);
            layers.push(distinct);
            observations = rest;
        }
        layers
    }

    /// Returns the set that [`RecordSet::new`] builds from the observations, and the superseded observations. A
    /// superseded observation is left out if its replacement is from the same record batch.
    fn separate(kind: Kind, mut observations: Vec<RawObservation>) -> (Self, Vec<RawObservation>) {
        observations.sort_unstable_by(|a, b| a.compare_newest_first(b, kind));
        let (mut distinct, mut repeated): (Vec<RawObservation>, Vec<RawObservation>) =
            (Vec::with_capacity(observations.len()), Vec::new());
        for observation in observations {
            match distinct.last().filter(|last| last.compare_content(&observation, kind).is_eq()) {
                None => distinct.push(observation),
                Some(last) if last.frame != observation.frame => repeated.push(observation),
                Some(_) => {}
            }
        }
        (Self { kind, observations: distinct }, repeated)
    }

    /// Returns only the observations from known record batches. A batch is known if `is_known` returns true for its id.
    pub fn known(self, is_known: impl Fn(&[u8; 16]) -> bool) -> impl Iterator<Item = RawObservation> {
        self.observations.into_iter().filter(move |observation| is_known(&observation.frame))
    }

    /// Removes records that never had the symbol `symbol`. All observations with one id are versions of one record;
    /// observations without an id stay.
    ///
    /// # Errors
    /// A record is damaged.
    pub fn of_symbol(self, symbol: &str) -> Result<Self, PackedRecordsError> {
        Ok(self.separate_symbol(symbol)?.0)
    }

    fn separate_symbol(mut self, symbol: &str) -> Result<(Self, Vec<RawObservation>), PackedRecordsError> {
        // Records of the whole market have no symbol.
        if symbol.is_empty() {
            return Ok((self, Vec::new()));
        }
        let mut ids = HashSet::new();
        for observation in &self.observations {
            if let Some(id) = &observation.id
                && observation.record.symbol()?.is_some_and(|own| own == symbol.as_bytes())
            {
                ids.insert(id.clone());
            }
        }
        let (own, foreign) = std::mem::take(&mut self.observations)
            .into_iter()
            .partition(|observation| observation.id.as_ref().is_none_or(|id| ids.contains(id)));
        self.observations = own;
        Ok((self, foreign))
    }

    /// Number of observations.
    pub fn len(&self) -> usize {
        self.observations.len()
    }

    /// True if the set has no observation.
    pub fn is_empty(&self) -> bool {
        self.observations.is_empty()
    }

    /// Observations of the set, sorted by content.
    pub fn observations(&self) -> &[RawObservation] {
        &self.observations
    }

    /// True if the observations are distinct and sorted by content. [`RecordSet::new`] guarantees this.
    pub(super) fn is_in_order(&self) -> bool {
        self.observations.is_sorted_by(|a, b| a.compare_content(b, self.kind).is_lt())
    }
}

/// Row of a feed: an encoded record with its provenance and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawObservation {
    /// Vendor's id of the record; `None` if the vendor gives none.
    pub id: Option<String>,
    /// Vendor's permanent id of the security, which stays the same when the symbol changes; `None` if unknown.
    pub security_ref: Option<String>,
    /// Vendor's revision number of the record; a higher one is newer.
    pub revision: i64,
    /// True if the row retracts the record, false if it adds or corrects the record.
    pub retracted: bool,
    /// Time of observation, in microseconds since 1970, UTC.
    pub observed_at: i64,
    /// Line number of the row in the feed's file.
    pub line: u64,
    /// Id of the record batch that contains the row.
    pub frame: [u8; 16],
    /// Encoded record.
    pub record: EncodedRecord,
}

impl RawObservation {
    /// Compares the content of two rows: id, revision, retraction and record. A `Security` without an id is also
    /// compared by `security_ref`, because vendors reuse tickers. Rows with equal content are one observation.
    pub(super) fn compare_content(&self, other: &Self, kind: Kind) -> Ordering {
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

    /// Sort order for building a set. Rows are sorted by content. Among rows with equal content, the newest row (see
    /// `provenance`) comes first.
    pub(super) fn compare_newest_first(&self, other: &Self, kind: Kind) -> Ordering {
        self.compare_content(other, kind)
            .then_with(|| other.provenance().cmp(&self.provenance()))
            .then_with(|| other.security_ref.cmp(&self.security_ref))
    }

    /// Provenance of the row: observation time, line and record batch. The newest row is the row with the greatest
    /// provenance.
    pub(super) fn provenance(&self) -> (i64, u64, [u8; 16]) {
        (self.observed_at, self.line, self.frame)
    }
}
