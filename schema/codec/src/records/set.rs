//! Set of distinct observations.

use super::raw::RawObservation;
use market::event::Kind;

/// Distinct observations of one symbol, kind and source, sorted by content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSet {
    pub(super) kind: Kind,
    pub(super) observations: Vec<RawObservation>,
}

impl RecordSet {
    /// Builds a set from observations. If several observations have equal content, only the newest is kept.
    pub fn new(kind: Kind, mut observations: Vec<RawObservation>) -> Self {
        let newest_first = |a: &RawObservation, b: &RawObservation| {
            a.compare_content(b, kind)
                .then_with(|| b.provenance().cmp(&a.provenance()))
                .then_with(|| b.security_ref.cmp(&a.security_ref))
        };
        observations.sort_unstable_by(newest_first);
        observations.dedup_by(|a, b| a.compare_content(b, kind).is_eq());
        Self { kind, observations }
    }

    /// Returns the union of the set and further observations.
    pub fn merge(mut self, more: Vec<RawObservation>) -> Self {
        self.observations.extend(more);
        Self::new(self.kind, self.observations)
    }

    /// Kind of the records.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Observations of the set, sorted by content.
    pub fn observations(&self) -> &[RawObservation] {
        &self.observations
    }

    /// True if the observations are distinct and sorted by content.
    pub(super) fn is_in_order(&self) -> bool {
        self.observations.is_sorted_by(|a, b| a.compare_content(b, self.kind).is_lt())
    }
}
