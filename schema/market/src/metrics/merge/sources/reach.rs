//! Reach of an overlay: the largest distance at which a row may take the place of another source's row (R32).
//!
//! The reach of a dividend is a quarter of the payment period, and at most 20 days. The payment period is that of the
//! local frequency: 365.25/n days for n payments a year (R34). Irregular payers, and payers with 13 or more payments a
//! year, have no n. Their period is the median of the six gaps around the day.
//!
//! The period is read from the regular rows of the two sources. The source with more regular ex-dates is asked first,
//! because a correction file of two rows does not show a period. If neither source has a period, the reach is 20 days.
//!
//! The reach of a split is 5 sessions.

use std::collections::BTreeMap;

use chrono::NaiveDate;

use crate::history::Observation;
use crate::metrics::calendar::sessions_between;
use crate::metrics::dividends::ex_date::Settlement;
use crate::metrics::dividends::schedule::{ScheduleRow, local_frequencies};
use crate::metrics::merge::winner::{MergeRecord, Reach};
use crate::metrics::rules::ScheduleRules;

/// Largest reach of a dividend, days.
const MOST_DAYS: i64 = 20;
/// Reach of a split, sessions.
const SPLIT_SESSIONS: i32 = 5;
/// Number of gaps on each side of a day from which the period of an irregular payer is read.
const GAPS_AROUND: usize = 3;

/// Largest distance at which records of one kind are compared, days. It is never below the reach.
pub(super) const LARGEST_DISTANCE: i64 = MOST_DAYS;

/// Regular ex-dates of each source, with a quarter of the payment period around each of them.
#[derive(Debug, Default)]
pub(super) struct PaymentPeriods<'a>(BTreeMap<&'a str, SourcePeriods>);

#[derive(Debug, Default)]
struct SourcePeriods {
    ex_dates: Vec<NaiveDate>,
    /// For each ex-date, a quarter of the payment period, in whole days. `None` if the period is unknown.
    quarters: Vec<Option<i64>>,
}

impl<'a> PaymentPeriods<'a> {
    /// Reads the payment periods from the valid records of each source.
    pub(super) fn read<T: MergeRecord + 'a>(
        rows: impl Iterator<Item = &'a Observation<T>>,
        settlement: Settlement,
        rules: &ScheduleRules,
    ) -> Self {
        let mut by_source: BTreeMap<&str, Vec<ScheduleRow>> = BTreeMap::new();
        for row in rows {
            if let Some(regular) = row.record.schedule_row(settlement) {
                by_source.entry(&row.source).or_default().push(regular);
            }
        }
        let of_source = |(source, rows)| (source, SourcePeriods::read(rows, rules));
        Self(by_source.into_iter().map(of_source).collect())
    }

    /// Reach of a dividend between two sources around a day, days.
    fn reach_days(&self, sources: [&str; 2], day: NaiveDate) -> i64 {
        let mut known: Vec<&SourcePeriods> = sources.iter().filter_map(|source| self.0.get(source)).collect();
        known.sort_by_key(|periods| std::cmp::Reverse(periods.ex_dates.len()));
        let quarter = known.into_iter().find_map(|periods| periods.quarter_around(day));
        quarter.map_or(MOST_DAYS, |days| days.min(MOST_DAYS))
    }

    /// True if the records of two rows are within reach of each other. `older` is the row that would be covered.
    pub(super) fn is_within_reach<T: MergeRecord>(
        &self,
        older: (&str, NaiveDate),
        newer: (&str, NaiveDate),
    ) -> bool {
        let (first, last) = (older.1.min(newer.1), older.1.max(newer.1));
        let days = (last - first).num_days();
        days <= LARGEST_DISTANCE
            && match T::REACH {
                Reach::PaymentPeriod => days <= self.reach_days([older.0, newer.0], older.1),
                Reach::Sessions => sessions_between(first, last) <= SPLIT_SESSIONS,
            }
    }
}

impl SourcePeriods {
    fn read(mut rows: Vec<ScheduleRow>, rules: &ScheduleRules) -> Self {
        rows.sort_by_key(|row| (row.ex_date, row.amount));
        rows.dedup_by(|next, row| {
            let is_same_day = next.ex_date == row.ex_date;
            if is_same_day {
                row.amount = row.amount.saturating_add(next.amount);
            }
            is_same_day
        });
        let frequencies = local_frequencies(&rows, rules);
        let ex_dates: Vec<NaiveDate> = rows.iter().map(|row| row.ex_date).collect();
        let quarter = |(index, per_year): (usize, &Option<i32>)| match per_year {
            Some(per_year) => Some(36_525 / (400 * i64::from(*per_year))),
            None => median_gap_around(&ex_dates, index).map(|days| days / 4),
        };
        let quarters = frequencies.iter().enumerate().map(quarter).collect();
        Self { ex_dates, quarters }
    }

    /// Quarter of the payment period at the ex-date that is nearest to `day`.
    fn quarter_around(&self, day: NaiveDate) -> Option<i64> {
        let after = self.ex_dates.partition_point(|ex_date| *ex_date < day);
        let distance = |index: &usize| (self.ex_dates[*index] - day).num_days().abs();
        let neighbours = [after.checked_sub(1), Some(after).filter(|index| *index < self.ex_dates.len())];
        let nearest = neighbours.into_iter().flatten().min_by_key(distance)?;
        self.quarters[nearest]
    }
}

/// Median of the gaps around an ex-date, days: of the three gaps before it and the three gaps after it.
fn median_gap_around(ex_dates: &[NaiveDate], index: usize) -> Option<i64> {
    let around = &ex_dates[index.saturating_sub(GAPS_AROUND)..ex_dates.len().min(index + GAPS_AROUND + 1)];
    let mut gaps: Vec<i64> = around.windows(2).map(|pair| (pair[1] - pair[0]).num_days()).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len() / 2).copied()
}

#[cfg(test)]
mod tests;
