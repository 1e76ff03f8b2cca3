//! Choice of one source per date range, for dividends and splits. Manual records override single records of the chosen
//! source (R32).

use std::collections::BTreeMap;

use super::same_day_payments::SameDayPayments;
use super::winner::{
    MergeRecord, ObservationStatus, QuarantinedRow, SymbolOrder, WinningVersion, pick_winners,
};
use crate::event::{EventRecord, Kind};
use crate::history::{Observation, SourcePolicy};
use crate::metrics::source_preference::{MANUAL, SourceCandidate, preferred, range_of, range_starts};

/// Winning versions from the preferred sources, and the status of every observation. The winning version of a record is
/// the version that replaces all others.
#[derive(Debug)]
pub(crate) struct PreferredWinners {
    pub winners: Vec<WinningVersion>,
    pub statuses: Vec<ObservationStatus>,
    pub quarantined: Vec<QuarantinedRow>,
}

/// First stage of the merge of dividends or splits. It finds the winning version of each record, then keeps the winners
/// from the preferred sources.
pub(crate) fn preferred_winners<T: MergeRecord + EventRecord>(
    observations: &[Observation<T>],
    policy: &SourcePolicy,
    symbols: SymbolOrder<'_>,
    same_day_payments: &SameDayPayments<'_>,
) -> PreferredWinners {
    let mut statuses = vec![ObservationStatus::Used; observations.len()];
    let mut quarantined = Vec::new();
    let all = pick_winners(observations, symbols, same_day_payments, &mut statuses, &mut quarantined);
    let mut winners =
        keep_preferred_sources(observations, all, T::KIND, policy, same_day_payments, &mut statuses);
    withdraw_by_manual(observations, &mut winners, same_day_payments, &mut statuses);
    PreferredWinners { winners, statuses, quarantined }
}

/// Keeps the manual records and the winning versions from the preferred sources. All other winners get the status
/// [`ObservationStatus::OtherSource`] or [`ObservationStatus::Overridden`].
fn keep_preferred_sources<T: MergeRecord>(
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
    mut winners: Vec<WinningVersion>,
    kind: Kind,
    policy: &SourcePolicy,
    statuses: &mut [ObservationStatus],
) -> Vec<WinningVersion> {
    let newest = newest_by_source(observations.iter().map(|o| (o.source.as_str(), o.observed_at)));
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
    winners.retain(|winner| {
        let source = observations[winner.index].source.as_str();
        let is_chosen = chosen.get(&range(winner)).copied() == Some(source);
        if !is_chosen {
            statuses[winner.index] = ObservationStatus::OtherSource;
        }
        is_chosen
    });
    winners
}

/// Greatest date or time of each source. `dated` has pairs of a source and a date or time.
pub(crate) fn newest_by_source<'a, T: Ord + Copy>(
    dated: impl Iterator<Item = (&'a str, T)>,
) -> BTreeMap<&'a str, T> {
    let mut newest = BTreeMap::new();
    for (source, date) in dated {
        let known = newest.entry(source).or_insert(date);
        *known = date.max(*known);
    }
    newest
}

/// Adds a manual record to `kept`, and removes the vendor's record with the same id or natural key.
///
/// This also applies to a withdrawn manual record. In this case, neither of the two records is used.
fn apply_manual_record<T: MergeRecord>(
    observations: &[Observation<T>],
    kept: &mut Vec<WinningVersion>,
    record: WinningVersion,
    same_day_payments: &SameDayPayments<'_>,
    statuses: &mut [ObservationStatus],
) {
    let manual = &observations[record.index];
    kept.retain(|winner| {
        let replaced = is_same_payment(manual, &observations[winner.index], same_day_payments);
        if replaced {
            statuses[winner.index] = ObservationStatus::Overridden;
        }
        !replaced
    });
    kept.push(record);
}

fn is_same_payment<T: MergeRecord>(
    manual: &Observation<T>,
    vendor: &Observation<T>,
    same_day_payments: &SameDayPayments<'_>,
) -> bool {
    let same_id = manual.id.is_some() && manual.id == vendor.id;
    let same_key = || {
        manual.record.compare_natural(&vendor.record).is_eq()
            && !manual.record.is_distinct_payment(&vendor.record, same_day_payments)
    };
    vendor.source != MANUAL && (same_id || same_key())
}

/// Withdraws each vendor's record in `kept` that has the id or natural key of a manual retraction. With such a
/// retraction, an operator can remove a vendor's record without a manual record that replaces it.
fn withdraw_by_manual<T: MergeRecord>(
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
        let is_withdrawn = |index: &usize| is_same_payment(&observations[*index], vendor, same_day_payments);
        if retractions.iter().any(is_withdrawn) {
            winner.cancelled = true;
            statuses[winner.index] = ObservationStatus::Cancelled;
        }
    }
}
