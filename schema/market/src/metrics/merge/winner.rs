//! Winning version of each source and key, from all revisions of a record (R29).
//!
//! The key is the vendor's id, or else the natural key. Sibling amounts (different amounts of one natural key in one
//! file) have separate keys. The greatest version wins. Versions are compared in this order: revision, preference,
//! observation time, retraction, line, record batch. The order is total, so any permutation of the observations gives
//! the same winners.
//!
//! The preference only ranks versions with an id. A put whose ex-date matches its record date is preferred, then the
//! put with the most dates. A retraction is preferred to every put, so a put of the same revision never restores the
//! record.
//!
//! A retraction without an id also withdraws rows with an id. These rows must have the natural key and source of the
//! retraction, and must not be newer. A retraction without an amount withdraws all payments of the day. A retraction
//! with an amount does not withdraw the siblings of this amount.

mod merge_record;

use std::cmp::Ordering;

use chrono::{DateTime, Utc};
use smallvec::{SmallVec, smallvec};

use super::same_day_payments::SameDayPayments;
use crate::event::Action;
use crate::history::Observation;
use crate::observation::VersionRank;
use crate::row::QuarantineReason;
use crate::symbol::Symbol;

pub(crate) use merge_record::MergeRecord;
pub use merge_record::{dividend_preference, split_preference};

/// Status of an observation after the merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservationStatus {
    /// The observation is used in the figures.
    Used,
    /// Replaced by a greater version of the same key. The value is the index of the greater version in the history.
    Superseded(usize),
    /// The feed or an operator withdrew the record.
    Cancelled,
    /// Duplicate of a row with another id and the same ex-date, type and currency. The value is the index of the other
    /// row in the history.
    Duplicate(usize),
    /// The row repeats a payment in another currency. The value is the index, in the history, of the row in the
    /// currency of the prices.
    Translation(usize),
    /// Not used, because another source is preferred on the date of the row.
    OtherSource,
    /// Replaced by a manual record.
    Overridden,
    /// Quarantined; the value is the reason.
    Quarantined(QuarantineReason),
    /// Not yet visible: declared after the as-of date.
    NotYetKnown,
    /// The newest version of the record has a symbol of another security.
    Moved,
}

/// Row that is quarantined or unusable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantinedRow {
    /// Index of the observation in the history's list for its kind.
    pub index: usize,
    /// Reason code.
    pub reason: QuarantineReason,
    /// Reason as a sentence.
    pub message: String,
}

/// Winning version of one source and key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WinningVersion {
    /// Index of the greatest put version, even if the record was withdrawn.
    pub index: usize,
    /// True if the record is withdrawn.
    pub cancelled: bool,
    /// True if another row without an id has the winner's key and revision, but another amount or ratio.
    pub conflict: bool,
    /// True if another row with the winner's id and revision has different values (R29).
    pub collapsed: bool,
    /// Index of the version from which the record id is built: it has the security's earliest symbol.
    pub named: usize,
    /// Number of the payment among the payments of one key: 0 for the smallest amount. Always 0 for a key with one
    /// payment.
    pub ordinal: usize,
}

/// Function that returns the index of a symbol among the security's symbols, earliest first. `None` for symbols of
/// other securities.
pub(crate) type SymbolOrder<'a> = &'a dyn Fn(&Symbol) -> Option<usize>;

/// Finds the winning versions, sorted by source. Sets the status of the observations that lose.
pub(crate) fn pick_winners<T: MergeRecord>(
    observations: &[Observation<T>],
    symbols: SymbolOrder<'_>,
    same_day_payments: &SameDayPayments<'_>,
    statuses: &mut [ObservationStatus],
    quarantined: &mut Vec<QuarantinedRow>,
) -> Vec<WinningVersion> {
    let mut order: Vec<usize> = Vec::with_capacity(observations.len());
    for (index, observation) in observations.iter().enumerate() {
        match observation.record.fault(observation.action, observation.id.is_some()) {
            Some((reason, message)) => {
                statuses[index] = ObservationStatus::Quarantined(reason);
                quarantined.push(QuarantinedRow { index, reason, message });
            }
            None => order.push(index),
        }
    }
    let at = |index: usize| &observations[index];
    // Most histories have one source. Source names then need no comparison.
    let one_source = observations.windows(2).all(|pair| pair[0].source == pair[1].source);
    let compare_keys = |a: usize, b: usize| {
        let sources = if one_source { Ordering::Equal } else { at(a).source.cmp(&at(b).source) };
        sources.then_with(|| compare_in_source(at(a), at(b)))
    };
    order.sort_unstable_by(|a, b| compare_keys(*a, *b).then_with(|| version(at(*a)).cmp(&version(at(*b)))));
    let withdrawals = withdrawals(observations, &order);
    let mut winners = Vec::new();
    let keys = order.chunk_by(|a, b| compare_keys(*a, *b).is_eq());
    for (ordinal, versions) in
        keys.flat_map(|versions| (0..).zip(group_by_payment(observations, versions, same_day_payments)))
    {
        let Some((last, earlier)) = versions.split_last() else { continue };
        let superseded = |statuses: &mut [ObservationStatus], by| {
            earlier.iter().for_each(|index| statuses[*index] = ObservationStatus::Superseded(by))
        };
        superseded(statuses, *last);
        if moved_away(observations, &versions, symbols) {
            statuses[*last] = ObservationStatus::Moved;
            continue;
        }
        let Some(shown) = versions.iter().rev().copied().find(|index| is_put(at(*index))) else {
            statuses[*last] = ObservationStatus::Cancelled;
            continue;
        };
        let cancelled = !is_put(at(*last)) || is_withdrawn(at(*last), &withdrawals, same_day_payments);
        if cancelled {
            statuses[*last] = ObservationStatus::Cancelled;
            statuses[shown] = ObservationStatus::Cancelled;
        }
        let (has_id, differs) = (at(*last).id.is_some(), |a: &T, b: &T| !a.same_content(b));
        winners.push(WinningVersion {
            index: shown,
            cancelled,
            conflict: !cancelled && !has_id && has_rival(observations, &versions, *last, differs),
            collapsed: !cancelled && has_id && has_rival(observations, &versions, *last, T::contradicts),
            named: put_under_earliest_symbol(observations, &versions, symbols).unwrap_or(shown),
            ordinal,
        });
    }
    winners
}

/// Index of the put with the security's earliest symbol. Record ids then stay the same if a vendor delivers the history
/// under a new ticker.
fn put_under_earliest_symbol<T: MergeRecord>(
    observations: &[Observation<T>],
    versions: &[usize],
    symbols: SymbolOrder<'_>,
) -> Option<usize> {
    let place = |index: &usize| {
        let symbol = observations[*index].record.symbol();
        let place = symbols(symbol);
        (place.is_none(), place, symbol)
    };
    versions.iter().copied().filter(|index| is_put(&observations[*index])).min_by_key(place)
}

/// Indexes of the versions of one payment, usually one index.
type PaymentVersions = SmallVec<[usize; 2]>;

/// Groups the versions of one natural key by payment. The payment with the smallest amount is first.
///
/// Versions are read from the greatest down. A put is a new payment if it is a sibling of all payments found so far.
/// Otherwise it is an older version of the first payment of which it is not a sibling. A retraction withdraws every
/// payment that is not its sibling.
fn group_by_payment<T: MergeRecord>(
    observations: &[Observation<T>],
    versions: &[usize],
    same_day_payments: &SameDayPayments<'_>,
) -> SmallVec<[PaymentVersions; 1]> {
    if let [only] = versions {
        return smallvec![smallvec![*only]];
    }
    let mut found: Vec<&T> = Vec::new();
    if observations[versions[0]].id.is_none() {
        for record in versions.iter().rev().map(|index| &observations[*index]).filter(|o| is_put(o)) {
            if found.iter().all(|payment| payment.is_distinct_payment(&record.record, same_day_payments)) {
                found.push(&record.record);
            }
        }
    }
    if found.len() < 2 {
        return smallvec![PaymentVersions::from_slice(versions)];
    }
    let is_version =
        |row: &Observation<T>, payment: &T| !row.record.is_distinct_payment(payment, same_day_payments);
    let home = |row: &Observation<T>| found.iter().position(|payment| is_version(row, payment));
    let of = |place: usize| {
        let own = |row: &Observation<T>| {
            if is_put(row) { home(row) == Some(place) } else { is_version(row, found[place]) }
        };
        versions.iter().copied().filter(|index| own(&observations[*index])).collect()
    };
    let mut places: Vec<usize> = (0..found.len()).collect();
    places.sort_by(|a, b| found[*a].compare_same_day(found[*b]));
    places.into_iter().map(of).collect()
}

fn is_put<T>(observation: &Observation<T>) -> bool {
    observation.action == Action::Put
}

/// Orders rows of one source by key: by id, and rows without an id by natural key.
fn compare_in_source<T: MergeRecord>(a: &Observation<T>, b: &Observation<T>) -> Ordering {
    a.id.cmp(&b.id).then_with(|| match a.id {
        Some(_) => Ordering::Equal,
        None => a.record.compare_natural(&b.record),
    })
}

/// Version rank of an observation (R29). Only rows with an id have a preference above 0.
fn version<T: MergeRecord>(observation: &Observation<T>) -> VersionRank<'_> {
    observation.version(match (&observation.id, observation.action) {
        (None, _) => 0,
        (Some(_), Action::Retract) => u32::MAX,
        (Some(_), Action::Put) => observation.record.preference(),
    })
}

/// Retractions without an id. They may withdraw rows with an id.
fn withdrawals<'a, T>(observations: &'a [Observation<T>], order: &[usize]) -> Vec<&'a Observation<T>> {
    order.iter().map(|index| &observations[*index]).filter(|row| row.id.is_none() && !is_put(row)).collect()
}

fn is_withdrawn<T: MergeRecord>(
    winner: &Observation<T>,
    withdrawals: &[&Observation<T>],
    same_day_payments: &SameDayPayments<'_>,
) -> bool {
    winner.id.is_some()
        && withdrawals.iter().any(|retraction| {
            retraction.source == winner.source
                && retraction.record.compare_natural(&winner.record) == Ordering::Equal
                && !retraction.record.is_distinct_payment(&winner.record, same_day_payments)
                && (winner.revision, winner.observed_at) <= (retraction.revision, retraction.observed_at)
        })
}

fn moved_away<T: MergeRecord>(
    observations: &[Observation<T>],
    versions: &[usize],
    symbols: SymbolOrder<'_>,
) -> bool {
    let symbol = |index: &usize| observations[*index].record.symbol();
    let Some(last) = versions.last() else { return false };
    observations[*last].id.is_some()
        && versions.iter().any(|index| symbol(index) != symbol(last))
        && symbols(symbol(last)).is_none()
}

/// True if another put with the winner's revision `differs` from the winner.
fn has_rival<T: MergeRecord>(
    observations: &[Observation<T>],
    versions: &[usize],
    winner: usize,
    differs: impl Fn(&T, &T) -> bool,
) -> bool {
    let best = &observations[winner];
    versions
        .iter()
        .map(|index| &observations[*index])
        .any(|other| is_put(other) && other.revision == best.revision && differs(&other.record, &best.record))
}

/// Key that orders versions of different records by time: observation time, line, and record batch id.
pub(crate) fn version_time<T>(observation: &Observation<T>) -> (DateTime<Utc>, u64, &[u8; 16]) {
    (observation.observed_at, observation.line, &observation.frame)
}

#[cfg(test)]
mod tests;
