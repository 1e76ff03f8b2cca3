//! Quarantined records that would cover other records, or outrank another source (R32).
//!
//! Some quarantines depend on prices and on other records (R28, R36). They are known only after the choice between
//! sources. A quarantined record covers nothing, so the merge is then repeated without it. Each repetition hides at
//! least one more record, so the repetitions end.

use std::collections::{BTreeMap, BTreeSet};

use crate::metrics::merge::winner::{ObservationStatus, QuarantinedRow};

/// Hidden records of one kind, by index of the observation.
pub(crate) type HiddenRows = BTreeMap<usize, QuarantinedRow>;

/// Hidden records of a security.
#[derive(Debug, Default)]
pub(crate) struct HiddenRecords {
    pub dividends: HiddenRows,
    pub splits: HiddenRows,
}

/// Adds the quarantined records that cover or outrank another record. Returns true if there are any. `ranked` has the
/// records that outrank other sources, by date range.
pub(crate) fn hide_quarantined(
    hidden: &mut HiddenRows,
    statuses: &[ObservationStatus],
    ranked: &[Vec<usize>],
    quarantined: &[QuarantinedRow],
) -> bool {
    let is_quarantined = |index: &usize| matches!(statuses[*index], ObservationStatus::Quarantined(_));
    // The row that is used for the payment of a row.
    let used_row = |index: usize| {
        let duplicate_of = |index: &usize| match statuses[*index] {
            ObservationStatus::Duplicate(of)
            | ObservationStatus::Translation(of)
            | ObservationStatus::PartOf(of) => Some(of),
            _ => None,
        };
        std::iter::successors(Some(index), duplicate_of).last().unwrap_or(index)
    };
    let covering = statuses.iter().filter_map(|status| match status {
        ObservationStatus::Covered(by) | ObservationStatus::Overridden(by) => Some(used_row(*by)),
        _ => None,
    });
    let mut found: BTreeSet<usize> = covering.filter(is_quarantined).collect();
    for indexes in ranked {
        let used: Vec<usize> = indexes.iter().map(|index| used_row(*index)).collect();
        if used.iter().all(is_quarantined) {
            found.extend(used);
        }
    }
    let rows = quarantined.iter().filter(|row| found.contains(&row.index));
    hidden.extend(rows.map(|row| (row.index, row.clone())));
    !found.is_empty()
}
