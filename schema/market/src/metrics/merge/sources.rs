//! Choice between the sources of dividends and splits (R32). Three rules apply, in this order:
//! 1. Rank: in each date range of the source policy, only the records of the smallest rank are used. A rank without a
//!    valid record in the range is skipped.
//! 2. Overlay: of the sources with one rank, and of the sources without a rank, a newer record takes the place of older
//!    ones (`overlay`).
//! 3. Manual records replace the matching records of the vendors (`manual`).
//!
//! A record is valid if it is neither withdrawn nor quarantined. Quarantines that depend on prices and on other records
//! follow later (`hidden`). Other records neither cover a record nor outrank a source.
//!
//! A withdrawn record of a vendor is listed as withdrawn only if no valid record of another source replaces it. If
//! only other sources have valid records, all withdrawn records of the source are left out.

mod hidden;
mod manual;
mod overlay;
mod reach;
mod selection;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;

pub(crate) use hidden::{HiddenRecords, HiddenRows, hide_quarantined};
use manual::{apply_manual_record, withdraw_by_manual};
use overlay::{Overlay, OverlayRecord};
use selection::Selection;

use super::same_day_payments::SameDayPayments;
use super::winner::{
    MergeRecord, ObservationStatus, QuarantinedRow, SymbolOrder, WinningVersion, pick_winners,
};
use crate::event::{EventRecord, Kind};
use crate::history::{Observation, SourcePolicy};
use crate::metrics::dividends::ex_date::Settlement;
use crate::metrics::rules::ScheduleRules;
use crate::metrics::source_preference::{MANUAL, Standing, range_of, range_starts};

/// Winning versions of the records that are used, and the status of every observation. The winning version of a record
/// is the version that replaces all others.
#[derive(Debug)]
pub(crate) struct PreferredWinners {
    pub winners: Vec<WinningVersion>,
    pub statuses: Vec<ObservationStatus>,
    pub quarantined: Vec<QuarantinedRow>,
    /// For each date range in which a rank outranks other sources, the indexes of its valid records.
    pub ranked: Vec<Vec<usize>>,
}

/// Inputs of the choice between sources.
#[derive(Clone, Copy)]
pub(crate) struct SourceChoice<'a> {
    pub policy: &'a SourcePolicy,
    pub rules: &'a ScheduleRules,
    pub symbols: SymbolOrder<'a>,
    /// Settlement times of the security's market.
    pub settlement: Settlement,
    pub same_day_payments: &'a SameDayPayments<'a>,
    /// Records that are quarantined, and therefore not valid.
    pub hidden: &'a HiddenRows,
}

/// First stage of the merge of dividends or splits. It finds the winning version of each record, and chooses between the
/// sources.
pub(crate) fn preferred_winners<T: MergeRecord + EventRecord>(
    observations: &[Observation<T>],
    choice: &SourceChoice<'_>,
) -> PreferredWinners {
    let mut statuses = vec![ObservationStatus::Used; observations.len()];
    let mut quarantined = Vec::new();
    let (settlement, same_day_payments) = (choice.settlement, choice.same_day_payments);
    let mut winners = pick_winners(
        observations,
        choice.symbols,
        settlement,
        same_day_payments,
        &mut statuses,
        &mut quarantined,
    );
    let hidden = |winner: &WinningVersion| choice.hidden.get(&winner.index);
    for row in winners.iter().filter_map(hidden) {
        statuses[row.index] = ObservationStatus::Quarantined(row.reason);
        quarantined.push(row.clone());
    }
    winners.retain(|winner| hidden(winner).is_none());
    withdraw_by_manual(observations, &mut winners, same_day_payments, &mut statuses);
    let source = |winner: &WinningVersion| observations[winner.index].source.as_str();
    // Most histories have one source.
    let selection = if winners.windows(2).all(|pair| source(&pair[0]) == source(&pair[1])) {
        Selection { winners, ..Selection::default() }
    } else {
        let (manual, vendors) = winners.into_iter().partition(|winner| source(winner) == MANUAL);
        let mut selection = choose_sources(observations, vendors, choice, &mut statuses);
        for record in manual {
            apply_manual_record(observations, &mut selection, record, same_day_payments, &mut statuses);
        }
        selection
    };
    PreferredWinners { winners: selection.winners, statuses, quarantined, ranked: selection.ranked }
}

/// Applies the source policy and the overlay to the records of the vendors.
fn choose_sources<T: MergeRecord + EventRecord>(
    observations: &[Observation<T>],
    winners: Vec<WinningVersion>,
    choice: &SourceChoice<'_>,
    statuses: &mut [ObservationStatus],
) -> Selection {
    let (mut valid, withdrawn): (Vec<WinningVersion>, Vec<WinningVersion>) =
        winners.into_iter().partition(|winner| !winner.cancelled);
    let ranges = RankedRanges::new(observations, &valid, choice);
    let outranking = |winner: &WinningVersion| ranges.outranking(&observations[winner.index]);
    valid.retain(|winner| {
        let outranking = outranking(winner);
        if let Some(by) = outranking {
            statuses[winner.index] = ObservationStatus::OtherSource(by);
        }
        outranking.is_none()
    });
    let record = |winner: &WinningVersion| {
        let observation = &observations[winner.index];
        OverlayRecord::new(observation, ranges.standing(observation), choice.settlement)
    };
    let records: Vec<OverlayRecord<'_, T>> = valid.iter().map(record).collect();
    let overlay = Overlay::new(&records, choice.same_day_payments, choice.settlement, choice.rules);
    let mut selection = Selection::default();
    for (winner, cover) in valid.iter().zip(overlay.covers()) {
        match cover.map(|cover| valid[cover].index) {
            None => selection.winners.push(*winner),
            Some(cover) => {
                statuses[winner.index] = ObservationStatus::Covered(cover);
                selection.covered.insert(winner.index, cover);
            }
        }
    }
    let is_of_valid_source = |winner: &WinningVersion| {
        records.iter().any(|record| record.source() == observations[winner.index].source)
    };
    selection.winners.extend(withdrawn.into_iter().filter(|winner| {
        records.is_empty()
            || (is_of_valid_source(winner)
                && outranking(winner).is_none()
                && !overlay.has_stand_in(&record(winner)))
    }));
    selection.ranked = ranges.into_ranked();
    selection
}

/// Date ranges of the source policy, with the smallest rank that has a valid record in each range.
struct RankedRanges<'a> {
    policy: &'a SourcePolicy,
    settlement: Settlement,
    kind: Kind,
    starts: Vec<NaiveDate>,
    /// For each range with valid records, the smallest standing and the indexes of its records.
    smallest: BTreeMap<usize, (Standing, Vec<usize>)>,
    /// Ranges in which a record is outranked.
    contested: BTreeSet<usize>,
}

impl<'a> RankedRanges<'a> {
    fn new<T: MergeRecord + EventRecord>(
        observations: &[Observation<T>],
        valid: &[WinningVersion],
        choice: &SourceChoice<'a>,
    ) -> Self {
        let SourceChoice { policy, settlement, .. } = *choice;
        let (smallest, contested) = (BTreeMap::new(), BTreeSet::new());
        let (kind, starts) = (T::KIND, range_starts(policy, T::KIND));
        let mut ranges = Self { policy, settlement, kind, starts, smallest, contested };
        // Without a rule, no source outranks another.
        let ranked = if policy.rules.iter().any(|rule| rule.kind == T::KIND) { valid } else { &[] };
        for winner in ranked {
            let observation = &observations[winner.index];
            let (range, standing) = (ranges.range(observation), ranges.standing(observation));
            let (smallest, indexes) = ranges.smallest.entry(range).or_insert((standing, Vec::new()));
            if standing != *smallest {
                ranges.contested.insert(range);
            }
            match standing.cmp(smallest) {
                Ordering::Less => (*smallest, *indexes) = (standing, vec![winner.index]),
                Ordering::Equal => indexes.push(winner.index),
                Ordering::Greater => {}
            }
        }
        ranges
    }

    fn range<T: MergeRecord>(&self, observation: &Observation<T>) -> usize {
        range_of(&self.starts, observation.record.date(self.settlement).unwrap_or_default())
    }

    fn standing<T: MergeRecord>(&self, observation: &Observation<T>) -> Standing {
        Standing::new(self.policy, self.kind, &observation.source, self.starts[self.range(observation)])
    }

    /// Index of a record that outranks the source of `observation` on its date; `None` if its source may be used.
    fn outranking<T: MergeRecord>(&self, observation: &Observation<T>) -> Option<usize> {
        let (smallest, indexes) = self.smallest.get(&self.range(observation))?;
        indexes.first().copied().filter(|_| *smallest < self.standing(observation))
    }

    fn into_ranked(mut self) -> Vec<Vec<usize>> {
        self.smallest.retain(|range, _| self.contested.contains(range));
        self.smallest.into_values().map(|(_, indexes)| indexes).collect()
    }
}
