//! Overlay of the records of several sources: a newer record takes the place of older ones (R32).
//!
//! The newer of two records is the one that its source observed later ([`SourceCandidate::newest_first`]). It covers an
//! older record of another source in each of these cases:
//! 1. Same payment or split: both records have the same natural key, and no file marks them as different payments of
//!    one day (R29).
//! 2. Neighbour: both records are in one class and within reach of each other (`reach`). A class is a class of
//!    distributions (regular, special and other cash, spin-off, stock), or splits. The nearest records are paired first.
//!    One record covers at most one record of each other source, and is covered at most once.
//!
//! A regular and a special payment of one ex-date are also paired if their amounts are equal. Sources differ in the type
//! of a payment, and one payment must not count twice.
//!
//! All other records stay. A covered record still covers older ones: the record above it replaces both.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use chrono::NaiveDate;

use super::reach::{LARGEST_DISTANCE, PaymentPeriods};
use crate::history::Observation;
use crate::metrics::dividends::ex_date::Settlement;
use crate::metrics::merge::same_day_payments::SameDayPayments;
use crate::metrics::merge::winner::MergeRecord;
use crate::metrics::rules::ScheduleRules;
use crate::metrics::source_preference::{SourceCandidate, Standing};

/// Valid record of a vendor, with the standing of its source.
#[derive(Debug)]
pub(super) struct OverlayRecord<'a, T> {
    observation: &'a Observation<T>,
    /// Only records of equal standing are laid over each other.
    standing: Standing,
    date: NaiveDate,
}

impl<T> Clone for OverlayRecord<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for OverlayRecord<'_, T> {}

impl<'a, T: MergeRecord> OverlayRecord<'a, T> {
    pub(super) fn new(observation: &'a Observation<T>, standing: Standing, settlement: Settlement) -> Self {
        Self { observation, standing, date: observation.record.date(settlement).unwrap_or_default() }
    }

    pub(super) fn source(&self) -> &'a str {
        &self.observation.source
    }

    fn may_cover(&self, older: &Self) -> bool {
        self.observation.record.may_cover(&older.observation.record, self.date == older.date)
    }

    /// Sort key, the newest record first.
    fn newest_first(&self) -> impl Ord + use<'a, T> {
        let (source, observed_at) = (self.source(), self.observation.observed_at);
        SourceCandidate { source, observed_at }.newest_first()
    }

    /// True if this record may cover `older`: it is from another source of equal standing, and newer.
    fn is_above(&self, older: &Self) -> bool {
        self.source() != older.source()
            && self.standing == older.standing
            && self.newest_first() < older.newest_first()
    }
}

/// Records of all sources, laid over each other.
pub(super) struct Overlay<'r, 'a, T> {
    records: &'r [OverlayRecord<'a, T>],
    same_day_payments: &'r SameDayPayments<'r>,
    settlement: Settlement,
    rules: &'r ScheduleRules,
    /// Dates and indexes of the records, sorted.
    by_date: Vec<(NaiveDate, usize)>,
    covers: Vec<Option<usize>>,
    periods: OnceCell<PaymentPeriods<'a>>,
}

impl<'r, 'a, T: MergeRecord> Overlay<'r, 'a, T> {
    /// Finds the record that covers each record. The order of `records` decides between equally near records.
    pub(super) fn new(
        records: &'r [OverlayRecord<'a, T>],
        same_day_payments: &'r SameDayPayments<'r>,
        settlement: Settlement,
        rules: &'r ScheduleRules,
    ) -> Self {
        let mut by_date: Vec<(NaiveDate, usize)> =
            records.iter().zip(0..).map(|(record, index)| (record.date, index)).collect();
        by_date.sort_unstable();
        let (covers, periods) = (vec![None; records.len()], OnceCell::new());
        let mut overlay = Self { records, same_day_payments, settlement, rules, by_date, covers, periods };
        overlay.cover_same_payments();
        overlay.cover_neighbours();
        overlay
    }

    /// For each record, the index of the record that covers it; `None` for a record that is used.
    pub(super) fn covers(&self) -> impl Iterator<Item = Option<usize>> {
        self.covers.iter().copied()
    }

    /// True if a used record of another source stands for a withdrawn record.
    pub(super) fn has_stand_in(&self, withdrawn: &OverlayRecord<'a, T>) -> bool {
        let used = self.records.iter().zip(&self.covers).filter(|(_, cover)| cover.is_none());
        used.map(|(record, _)| record).any(|record| {
            record.source() != withdrawn.source()
                && record.standing == withdrawn.standing
                && (self.is_same_payment(record, withdrawn)
                    || (record.may_cover(withdrawn) && self.is_within_reach(record, withdrawn)))
        })
    }

    fn cover_same_payments(&mut self) {
        let records = self.records;
        for day in self.by_date.chunk_by(|(a, _), (b, _)| a == b) {
            for (_, older) in day {
                let above = day.iter().map(|(_, newer)| *newer).filter(|newer| {
                    let [newer, older] = [newer, older].map(|index| &records[*index]);
                    newer.is_above(older) && self.is_same_payment(newer, older)
                });
                self.covers[*older] = above.min_by_key(|newer| records[*newer].newest_first());
            }
        }
    }

    fn cover_neighbours(&mut self) {
        let mut candidates = self.near_pairs();
        if candidates.is_empty() {
            return;
        }
        candidates.sort_unstable();
        // Pairs of a record and another source, of which the record covers a record.
        let covers = self.covers.iter().zip(self.records);
        let mut pairs: BTreeSet<(usize, &str)> =
            covers.filter_map(|(newer, older)| Some(((*newer)?, older.source()))).collect();
        for (.., older, newer) in candidates {
            if self.covers[older].is_none() && pairs.insert((newer, self.records[older].source())) {
                self.covers[older] = Some(newer);
            }
        }
    }

    /// Pairs of an uncovered record and a newer record that may cover it: the distance in days, true if the contents
    /// differ, and the indexes of both records.
    fn near_pairs(&self) -> Vec<(i64, bool, usize, usize)> {
        let mut pairs = Vec::new();
        for (older, record) in self.records.iter().enumerate() {
            if self.covers[older].is_some() {
                continue;
            }
            let days = |other: NaiveDate| (other - record.date).num_days();
            let from = self.by_date.partition_point(|(other, _)| days(*other) < -LARGEST_DISTANCE);
            let near = self.by_date[from..].iter().take_while(|(other, _)| days(*other) <= LARGEST_DISTANCE);
            for (other, newer) in near {
                let above = &self.records[*newer];
                if above.is_above(record) && above.may_cover(record) && self.is_within_reach(above, record) {
                    let [a, b] = [above, record].map(|record| &record.observation.record);
                    pairs.push((days(*other).abs(), !a.same_content(b), older, *newer));
                }
            }
        }
        pairs
    }

    fn is_same_payment(&self, a: &OverlayRecord<'_, T>, b: &OverlayRecord<'_, T>) -> bool {
        let [a, b] = [a, b].map(|record| &record.observation.record);
        a.compare_natural(b).is_eq() && !a.is_distinct_payment(b, self.same_day_payments)
    }

    fn is_within_reach(&self, newer: &OverlayRecord<'a, T>, older: &OverlayRecord<'a, T>) -> bool {
        let periods = self.periods.get_or_init(|| {
            let rows = self.records.iter().map(|record| record.observation);
            PaymentPeriods::read(rows, self.settlement, self.rules)
        });
        let [newer, older] = [newer, older].map(|record| (record.source(), record.date));
        periods.is_within_reach::<T>(older, newer)
    }
}
