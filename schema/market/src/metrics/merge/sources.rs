//! Choice of one source per date range. Manual records override the chosen source (R32).

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::same_day_payments::SameDayPayments;
use super::winner::{MergeRecord, ObservationStatus, WinningVersion};
use crate::event::Kind;
use crate::history::{Observation, SourcePolicy};
use crate::metrics::source_preference::{MANUAL, SourceCandidate, preferred, range_of, range_starts};

/// Keeps the winning versions of the preferred sources. All others get the status [`ObservationStatus::OtherSource`] or
/// [`ObservationStatus::Overridden`].
pub(crate) fn keep_preferred_sources<T: MergeRecord>(
    observations: &[Observation<T>],
    winners: Vec<WinningVersion>,
    kind: Kind,
    policy: &SourcePolicy,
    same_day_payments: &SameDayPayments<'_>,
    statuses: &mut [ObservationStatus],
) -> Vec<WinningVersion> {
    let source = |winner: &WinningVersion| observations[winner.index].source.as_str();
    let single = winners.windows(2).all(|pair| source(&pair[0]) == source(&pair[1]));
    if single {
        return winners;
    }
    let (manual, vendors): (Vec<WinningVersion>, Vec<WinningVersion>) =
        winners.into_iter().partition(|winner| source(winner) == MANUAL);
    let mut kept = one_source_per_range(observations, vendors, kind, policy, statuses);
    for record in manual {
        apply_manual_record(observations, &mut kept, record, same_day_payments, statuses);
    }
    kept
}

fn one_source_per_range<T: MergeRecord>(
    observations: &[Observation<T>],
    winners: Vec<WinningVersion>,
    kind: Kind,
    policy: &SourcePolicy,
    statuses: &mut [ObservationStatus],
) -> Vec<WinningVersion> {
    let newest = newest_observations(observations);
    let starts = range_starts(policy, kind);
    let range = |winner: &WinningVersion| {
        range_of(&starts, observations[winner.index].record.date().unwrap_or_default())
    };
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
            let candidates =
                sources.iter().map(|source| SourceCandidate { source, observed_at: newest[source] });
            preferred(policy, kind, candidates, starts[*range]).map(|candidate| (*range, candidate.source))
        })
        .collect();
    winners
        .into_iter()
        .filter(|winner| {
            let believed =
                chosen.get(&range(winner)).copied() == Some(observations[winner.index].source.as_str());
            if !believed {
                statuses[winner.index] = ObservationStatus::OtherSource;
            }
            believed
        })
        .collect()
}

/// Newest observation time of each source.
pub(crate) fn newest_observations<T>(observations: &[Observation<T>]) -> BTreeMap<&str, DateTime<Utc>> {
    let mut newest: BTreeMap<&str, DateTime<Utc>> = BTreeMap::new();
    for observation in observations {
        let seen = newest.entry(&observation.source).or_insert(observation.observed_at);
        *seen = (*seen).max(observation.observed_at);
    }
    newest
}

/// Adds a manual record. It replaces the vendor's record with the same id or natural key.
///
/// A withdrawn manual record thereby withdraws the vendor's record.
fn apply_manual_record<T: MergeRecord>(
    observations: &[Observation<T>],
    kept: &mut Vec<WinningVersion>,
    record: WinningVersion,
    same_day_payments: &SameDayPayments<'_>,
    statuses: &mut [ObservationStatus],
) {
    let manual = &observations[record.index];
    let replaces = |winner: &WinningVersion| {
        let vendor = &observations[winner.index];
        let same_id = manual.id.is_some() && manual.id == vendor.id;
        vendor.source != MANUAL
            && (same_id || is_same_payment(&manual.record, &vendor.record, same_day_payments))
    };
    kept.retain(|winner| {
        let replaced = replaces(winner);
        if replaced {
            statuses[winner.index] = ObservationStatus::Overridden;
        }
        !replaced
    });
    kept.push(record);
}

fn is_same_payment<T: MergeRecord>(manual: &T, vendor: &T, same_day_payments: &SameDayPayments<'_>) -> bool {
    manual.compare_natural(vendor).is_eq() && !manual.is_distinct_payment(vendor, same_day_payments)
}

/// Withdraws vendors' records by manual retractions that have no manual put of the same record.
pub(crate) fn withdraw_by_manual<T: MergeRecord>(
    observations: &[Observation<T>],
    kept: &mut [WinningVersion],
    same_day_payments: &SameDayPayments<'_>,
    statuses: &mut [ObservationStatus],
) {
    let retractions: Vec<usize> = (0..observations.len())
        .filter(|index| {
            observations[*index].source == MANUAL && statuses[*index] == ObservationStatus::Cancelled
        })
        .collect();
    for winner in kept.iter_mut().filter(|winner| !winner.cancelled) {
        let vendor = &observations[winner.index];
        let withdrawn = retractions.iter().map(|index| &observations[*index]).any(|manual| {
            let same_id = manual.id.is_some() && manual.id == vendor.id;
            vendor.source != MANUAL
                && (same_id || is_same_payment(&manual.record, &vendor.record, same_day_payments))
        });
        if withdrawn {
            winner.cancelled = true;
            statuses[winner.index] = ObservationStatus::Cancelled;
        }
    }
}
