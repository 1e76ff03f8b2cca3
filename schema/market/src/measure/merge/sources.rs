//! One source whole per date range, manual records on top (R32).

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::beside::Beside;
use super::version::{Fate, Keyed, Winner};
use crate::event::Kind;
use crate::history::{Observation, SourcePolicy};
use crate::measure::policy::{Candidate, MANUAL, preferred, range_of, range_starts};

/// Keeps the winners of the believed sources; the rest gets [`Fate::OtherSource`] or [`Fate::Overridden`].
pub(crate) fn believed<T: Keyed>(
    observations: &[Observation<T>],
    winners: Vec<Winner>,
    kind: Kind,
    policy: &SourcePolicy,
    beside: &Beside<'_>,
    fates: &mut [Fate],
) -> Vec<Winner> {
    let source = |winner: &Winner| observations[winner.index].source.as_str();
    let single = winners.windows(2).all(|pair| source(&pair[0]) == source(&pair[1]));
    if single {
        return winners;
    }
    let (manual, vendors): (Vec<Winner>, Vec<Winner>) =
        winners.into_iter().partition(|winner| source(winner) == MANUAL);
    let mut kept = one_source_per_range(observations, vendors, kind, policy, fates);
    for record in manual {
        override_with(observations, &mut kept, record, beside, fates);
    }
    kept
}

fn one_source_per_range<T: Keyed>(
    observations: &[Observation<T>],
    winners: Vec<Winner>,
    kind: Kind,
    policy: &SourcePolicy,
    fates: &mut [Fate],
) -> Vec<Winner> {
    let newest = newest_observations(observations);
    let starts = range_starts(policy, kind);
    let range =
        |winner: &Winner| range_of(&starts, observations[winner.index].record.date().unwrap_or_default());
    let mut present: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for winner in &winners {
        let sources = present.entry(range(winner)).or_default();
        let source = observations[winner.index].source.as_str();
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    let chosen: BTreeMap<usize, &str> = present
        .iter()
        .filter_map(|(range, sources)| {
            let candidates = sources.iter().map(|source| Candidate { source, observed_at: newest[source] });
            preferred(policy, kind, candidates, starts[*range]).map(|candidate| (*range, candidate.source))
        })
        .collect();
    winners
        .into_iter()
        .filter(|winner| {
            let believed =
                chosen.get(&range(winner)).copied() == Some(observations[winner.index].source.as_str());
            if !believed {
                fates[winner.index] = Fate::OtherSource;
            }
            believed
        })
        .collect()
}

/// When each source was last heard of.
pub(crate) fn newest_observations<T>(observations: &[Observation<T>]) -> BTreeMap<&str, DateTime<Utc>> {
    let mut newest: BTreeMap<&str, DateTime<Utc>> = BTreeMap::new();
    for observation in observations {
        let seen = newest.entry(&observation.source).or_insert(observation.observed_at);
        *seen = (*seen).max(observation.observed_at);
    }
    newest
}

/// A manual record replaces the vendor's record of the same id or the same natural key; a manual retraction
/// withdraws it.
fn override_with<T: Keyed>(
    observations: &[Observation<T>],
    kept: &mut Vec<Winner>,
    record: Winner,
    beside: &Beside<'_>,
    fates: &mut [Fate],
) {
    let manual = &observations[record.index];
    let replaces = |winner: &Winner| {
        let vendor = &observations[winner.index];
        let same_id = manual.id.is_some() && manual.id == vendor.id;
        vendor.source != MANUAL && (same_id || is_same_payment(&manual.record, &vendor.record, beside))
    };
    kept.retain(|winner| {
        let replaced = replaces(winner);
        if replaced {
            fates[winner.index] = Fate::Overridden;
        }
        !replaced
    });
    kept.push(record);
}

fn is_same_payment<T: Keyed>(manual: &T, vendor: &T, beside: &Beside<'_>) -> bool {
    manual.compare_natural(vendor).is_eq() && !manual.is_beside(vendor, beside)
}

/// Manual retractions that never put anything still withdraw a vendor's record: they have no winner to show.
pub(crate) fn withdraw_by_manual<T: Keyed>(
    observations: &[Observation<T>],
    kept: &mut [Winner],
    beside: &Beside<'_>,
    fates: &mut [Fate],
) {
    let retractions: Vec<usize> = (0..observations.len())
        .filter(|index| observations[*index].source == MANUAL && fates[*index] == Fate::Cancelled)
        .collect();
    for winner in kept.iter_mut().filter(|winner| !winner.cancelled) {
        let vendor = &observations[winner.index];
        let withdrawn = retractions.iter().map(|index| &observations[*index]).any(|manual| {
            let same_id = manual.id.is_some() && manual.id == vendor.id;
            vendor.source != MANUAL && (same_id || is_same_payment(&manual.record, &vendor.record, beside))
        });
        if withdrawn {
            winner.cancelled = true;
            fates[winner.index] = Fate::Cancelled;
        }
    }
}
