//! Winning version of each source and key, from all revisions of a record (R29).
//!
//! A feed has two kinds of rows. A put adds or replaces a record. A retraction withdraws a record. All rows of one
//! source with the same key are versions of one record. The greatest version wins.
//!
//! The key is the vendor's id. A row without an id has a natural key instead. The natural key of a dividend is its
//! date, type and currency. The natural key of a split is its ex-date. A file may mark several amounts with one natural
//! key as different payments (sibling amounts). Each of these payments then has its own key.
//!
//! Versions are compared by these criteria, most important first:
//! 1. The higher revision is greater.
//! 2. The preferred row is greater (see below). Only rows with an id have a preference.
//! 3. The later observation time is greater.
//! 4. A retraction is greater than a put. This decides only for rows without an id.
//! 5. The higher line number is greater.
//! 6. The higher id of the record batch is greater.
//!
//! No two rows are equal by these criteria, so the order of the observations never changes the winners.
//!
//! The preference depends on the kind of row:
//! - Puts of a dividend: a row is preferred if its ex-date agrees with its record date. If several rows or no rows
//!   agree, the row with more dates is preferred.
//! - Puts of a split: the row with more dates is preferred.
//! - Retractions: a retraction is preferred to every put. Therefore a put never restores a record that was retracted in
//!   the same revision.
//!
//! A retraction without an id can also withdraw a row with an id. The row must have the same source and natural key as
//! the retraction, and must not be newer. A retraction without an amount withdraws all payments of the day. A
//! retraction with an amount does not withdraw the siblings of this amount.

mod merge_record;

use std::cmp::Ordering;

use chrono::{DateTime, Utc};
use smallvec::{SmallVec, smallvec};

use super::same_day_payments::SameDayPayments;
use crate::event::Action;
use crate::history::Observation;
use crate::metrics::dividends::ex_date::Settlement;
use crate::observation::VersionRank;
use crate::row::QuarantineReason;
use crate::symbol::Symbol;

pub(crate) use merge_record::{MergeRecord, Reach};

/// Status of an observation after the merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservationStatus {
    /// The observation is used in the figures.
    Used,
    /// A greater version of the same record replaced the row. The value is the index of that version in the history.
    Superseded(usize),
    /// The feed or an operator withdrew the record.
    Cancelled,
    /// Another row is the same payment or split, for example with another id. The value is the index of that row in the
    /// history.
    Duplicate(usize),
    /// The row repeats a payment in a foreign currency. The row in the currency of the prices is used instead. The
    /// value is the index of that row in the history.
    Translation(usize),
    /// A newer row of another source took the place of the row (R32). The value is the index of that row in the history.
    Covered(usize),
    /// Not used, because the source policy gives another source a smaller rank on the date of the row. The value is the
    /// index of a row of that source in the history.
    OtherSource(usize),
    /// A manual record replaced the row. The value is the index of the manual record in the history.
    Overridden(usize),
    /// Part of another payment of the same ex-date (R45); the value is the index of this payment's row.
    PartOf(usize),
    /// Quarantined; the value is the reason.
    Quarantined(QuarantineReason),
    /// The record was not known yet on the as-of date: it was declared later.
    NotYetKnown,
    /// The newest version of the record moved it to a symbol of another security.
    Moved,
}

/// Row that is quarantined, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantinedRow {
    /// Index of the observation among the history's observations of its kind, for example in its list of dividends.
    pub index: usize,
    /// Reason code.
    pub reason: QuarantineReason,
    /// Reason as a sentence.
    pub message: String,
}

/// Winning version of a record of one source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WinningVersion {
    /// Index of the greatest version that is not a retraction, even if the record was withdrawn.
    pub index: usize,
    /// True if the record is withdrawn.
    pub cancelled: bool,
    /// True if the winner has no id, and another row of the same key and revision has another amount or ratio.
    pub conflict: bool,
    /// True if the winner has an id, and another row of the same id and revision has other values (R29).
    pub collapsed: bool,
    /// Index of the version that has the security's earliest symbol. Record ids contain this symbol, so the ids stay
    /// the same after a change of the ticker.
    pub named: usize,
    /// Number of the payment among the payments with the same natural key. The payment with the smallest amount has the
    /// number 0. The number is also 0 if there is only one payment.
    pub ordinal: usize,
}

/// Function that returns the position of a symbol among the symbols of the security, earliest first. `None` for other
/// symbols.
pub(crate) type SymbolOrder<'a> = &'a dyn Fn(&Symbol) -> Option<usize>;

/// Finds the winning versions, sorted by source. Sets the status of observations that are replaced, withdrawn or moved,
/// and adds faulty rows to `quarantined`.
pub(crate) fn pick_winners<T: MergeRecord>(
    observations: &[Observation<T>],
    symbols: SymbolOrder<'_>,
    settlement: Settlement,
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
    // Most histories have one source. Their source names need no comparison.
    let one_source = observations.windows(2).all(|pair| pair[0].source == pair[1].source);
    let compare_keys = |a: usize, b: usize| {
        let sources = if one_source { Ordering::Equal } else { at(a).source.cmp(&at(b).source) };
        sources.then_with(|| compare_in_source(at(a), at(b)))
    };
    if observations.iter().all(|observation| observation.id.is_none()) {
        // A sort by date reads each row once. The rows are then almost in the order of their keys, so the next sort
        // compares few rows.
        order.sort_by_cached_key(|index| at(*index).record.date(settlement));
    }
    order.sort_unstable_by(|a, b| {
        compare_keys(*a, *b).then_with(|| version(at(*a), settlement).cmp(&version(at(*b), settlement)))
    });
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

/// Index of the version with the oldest ticker of the security. Retractions are ignored. Record ids contain this
/// ticker, so they survive a ticker change.
fn put_under_earliest_symbol<T: MergeRecord>(
    observations: &[Observation<T>],
    versions: &[usize],
    symbols: SymbolOrder<'_>,
) -> Option<usize> {
    if let [only] = versions {
        return Some(*only).filter(|index| is_put(&observations[*index]));
    }
    let place = |index: &usize| {
        let symbol = observations[*index].record.symbol();
        let place = symbols(symbol);
        (place.is_none(), place, symbol)
    };
    versions.iter().copied().filter(|index| is_put(&observations[*index])).min_by_key(place)
}

/// Indexes of the versions of one payment. Most payments have one version.
type PaymentVersions = SmallVec<[usize; 2]>;

/// Groups the versions of one natural key by payment, smallest amount first. `versions` are sorted by rank, and the
/// greatest is last.
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
        // A row adds a payment if the sibling amounts distinguish it from all payments found so far.
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
            // A retraction withdraws every payment that it can refer to.
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

/// Orders rows of one source by key: by id, or by natural key if they have no id.
fn compare_in_source<T: MergeRecord>(a: &Observation<T>, b: &Observation<T>) -> Ordering {
    a.id.cmp(&b.id).then_with(|| match a.id {
        Some(_) => Ordering::Equal,
        None => a.record.compare_natural(&b.record),
    })
}

/// Rank of an observation among the versions of its record (R29).
fn version<T: MergeRecord>(observation: &Observation<T>, settlement: Settlement) -> VersionRank<'_> {
    observation.version(match (&observation.id, observation.action) {
        (None, _) => 0,
        (Some(_), Action::Retract) => u32::MAX,
        (Some(_), Action::Put) => observation.record.preference(settlement),
    })
}

/// Retractions without an id. They can also withdraw rows with an id.
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

/// True if `differs` is true for the winning version and another version of the same revision. Retractions are ignored.
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

/// Sort key for versions of different records, oldest first: observation time, line, and record batch id.
pub(crate) fn version_time<T>(observation: &Observation<T>) -> (DateTime<Utc>, u64, &[u8; 16]) {
    (observation.observed_at, observation.line, &observation.frame)
}

#[cfg(test)]
mod tests;
