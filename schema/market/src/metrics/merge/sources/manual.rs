//! Manual records: records and retractions that an operator entered (R32). A manual record replaces the matching records
//! of the vendors: those with its id or its natural key.

use super::selection::Selection;
use crate::history::Observation;
use crate::metrics::merge::same_day_payments::SameDayPayments;
use crate::metrics::merge::winner::{MergeRecord, ObservationStatus, WinningVersion};
use crate::metrics::source_preference::MANUAL;

/// Adds a manual record to `selection`, and removes the vendors' records that it matches. If it matches a covered record, the
/// record that covers it is removed.
///
/// This also applies to a withdrawn manual record. In this case, neither of the two records is used.
pub(super) fn apply_manual_record<T: MergeRecord>(
    observations: &[Observation<T>],
    selection: &mut Selection,
    record: WinningVersion,
    same_day_payments: &SameDayPayments<'_>,
    statuses: &mut [ObservationStatus],
) {
    let manual = &observations[record.index];
    let is_match = |index: usize| is_same_payment(manual, &observations[index], same_day_payments);
    let matched = selection.covered.keys().copied().filter(|older| is_match(*older));
    let covering: Vec<usize> = matched.map(|older| selection.top_of(older)).collect();
    selection.winners.retain(|winner| {
        let is_replaced = is_match(winner.index) || covering.contains(&winner.index);
        if is_replaced {
            statuses[winner.index] = ObservationStatus::Overridden(record.index);
        }
        !is_replaced
    });
    selection.winners.push(record);
}

/// Withdraws each vendor's record in `winners` that has the id or natural key of a manual retraction. With such a
/// retraction, an operator can remove a vendor's record without a manual record that replaces it.
pub(super) fn withdraw_by_manual<T: MergeRecord>(
    observations: &[Observation<T>],
    winners: &mut [WinningVersion],
    same_day_payments: &SameDayPayments<'_>,
    statuses: &mut [ObservationStatus],
) {
    let retractions: Vec<usize> = (0..observations.len())
        .filter(|index| {
            observations[*index].source == MANUAL && statuses[*index] == ObservationStatus::Cancelled
        })
        .collect();
    for winner in winners.iter_mut().filter(|winner| !winner.cancelled) {
        let vendor = &observations[winner.index];
        let is_withdrawn = |index: &usize| is_same_payment(&observations[*index], vendor, same_day_payments);
        if retractions.iter().any(is_withdrawn) {
            winner.cancelled = true;
            statuses[winner.index] = ObservationStatus::Cancelled;
        }
    }
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
