//! Distinct observations as a set.

use std::collections::BTreeMap;

use chrono::NaiveDate;

use super::raw::RawObservation;
use crate::event::{Kind, MarketSession};
use crate::observation::Observation;
use crate::observation::VersionRank;

/// Distinct observations of one symbol, kind and source, in the order of what they say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Records {
    pub(super) kind: Kind,
    pub(super) observations: Vec<RawObservation>,
}

impl Records {
    /// Builds the set of these observations. The last occurrence of a repeated observation wins.
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

    /// Whether the observations are distinct and in the order of a set.
    pub(super) fn is_in_order(&self) -> bool {
        self.observations.is_sorted_by(|a, b| a.compare_said(b, self.kind).is_lt())
    }
}

/// The newest session among one source's observations, retracted ones aside.
pub fn newest_session(observations: &[Observation<MarketSession>]) -> Option<NaiveDate> {
    let mut newest: BTreeMap<NaiveDate, VersionRank<'_>> = BTreeMap::new();
    for session in observations {
        let version = session.version(0);
        let known = newest.entry(session.record.date).or_insert(version);
        *known = version.max(*known);
    }
    newest.into_iter().rev().find(|(_, version)| !version.retracted).map(|(date, _)| date)
}
