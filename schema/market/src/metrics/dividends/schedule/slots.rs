//! Slots and dividend years of a payment schedule (R34.5 to R34.7). Each row is assigned to a slot, and n consecutive
//! slots are a dividend year. Missing slots and changes of the frequency are reported.
//!
//! Each row has a slot number. A gap of about k payment periods between two rows raises the number by k. An early row
//! shortens the gap before it and lengthens the gap after it. The longer gap could then look like a missing slot. A
//! correction prevents this error:
//! - If a gap is shorter than k periods, half of the shortfall is subtracted from the next gap.
//! - If a gap is longer than k periods, half of the excess is added to the next gap.
//!
//! The first slot of a dividend year is a choice. The best choice gives the most payments a dividend year that equals
//! their calendar year. If several choices are equally good, the payments of the newest two years decide. The calendar
//! year of a payment is that of its payment date, because published lists count a payment in the year in which it is
//! paid. If fewer than half of the payments have a payment date, it is the year of the ex-date.
//!
//! A payer may move its payment for good, for example from February to November. Then most payments of two years are
//! outside their calendar year, and numbering starts anew at the first of them.

use chrono::{Datelike, NaiveDate};
use rust_decimal::Decimal;

use super::frequency::PeriodThousandths;
use super::reading::{MissingSlot, Reading};
use crate::metrics::arithmetic::exact;
use crate::metrics::rules::ScheduleRules;

/// Minimum gap between two rows at which a payment is missing between them, in thousandths of a payment period.
const MISSING_FROM: i64 = 1600;
/// Minimum number of payments a year at which missing payments are detected. With fewer payments a year, they are not
/// detected.
const NOTICED_FROM: i32 = 4;
/// Minimum ratio of the amount after missing slots to the amount before them. If the ratio is lower, the payer paused,
/// and no slot is missing.
///
/// The ratio is tested only if more than `assumed_slots` slots would be missing.
const NO_LOWER: Decimal = exact("0.98");

/// Assigns the rows of a segment (a series of payments without a pause) to dividend years. Reports missing slots, and
/// years in which the frequency changed.
pub(crate) fn assign_years(
    readings: &mut [&mut Reading],
    missing: &mut Vec<MissingSlot>,
    changed: &mut Vec<i32>,
    rules: &ScheduleRules,
) {
    for run in readings.chunk_by_mut(|a, b| a.per_year == b.per_year) {
        if let Some(per_year) = run[0].per_year {
            assign_run(run, per_year, missing, changed, rules);
        }
    }
    for pair in readings.windows(2).filter(|pair| pair[0].per_year != pair[1].per_year) {
        if pair.iter().all(|reading| reading.per_year.is_some()) {
            changed.extend([pair[0].year, pair[1].year]);
        }
    }
}

/// Assigns the rows of a run with one frequency to dividend years. Numbers the slots anew where the payer moved its
/// payments.
fn assign_run(
    run: &mut [&mut Reading],
    per_year: i32,
    missing: &mut Vec<MissingSlot>,
    changed: &mut Vec<i32>,
    rules: &ScheduleRules,
) {
    let years = RunYears::new(run, per_year, rules);
    if let Some(moved) = years.first_moved() {
        let (before, after) = run.split_at_mut(moved);
        assign_run(before, per_year, missing, changed, rules);
        assign_run(after, per_year, missing, changed, rules);
        changed.extend([before[moved - 1].year, after[0].year]);
        return;
    }
    years.report_missing(run, missing, rules);
    for (index, reading) in run.iter_mut().enumerate() {
        reading.year = years.year_of(years.slots[index]).unwrap_or(reading.year);
        // A row without a payment date agrees with its dividend year.
        let calendar_year = years.calendar_years[index].and_then(|year| i32::try_from(year).ok());
        reading.calendar_year = calendar_year.unwrap_or(reading.year);
    }
}

/// Consecutive rows with one frequency: the slot (payment period) of each row, numbered from 0, and its dividend year.
struct RunYears {
    slots: Vec<i64>,
    /// Calendar year of each row: of its payment date or of its ex-date. `None` if the payment date is unknown.
    calendar_years: Vec<Option<i64>>,
    per_year: i64,
    /// Position of the first row in its dividend year, from 0.
    offset: i64,
    /// Dividend year of the first row.
    first_year: i64,
}

impl RunYears {
    fn new(run: &[&mut Reading], per_year: i32, rules: &ScheduleRules) -> Self {
        let slots = number_slots(run, per_year);
        let per_year = i64::from(per_year);
        let years = calendar_years(run, rules);
        let first = i64::from(run[0].ex_date.year());
        // Divide each slot number once, because every candidate needs the results.
        let divided: Vec<(i64, i64)> =
            slots.iter().map(|slot| (slot.div_euclid(per_year), slot.rem_euclid(per_year))).collect();
        let newest = years.len().saturating_sub(2 * usize::try_from(per_year).unwrap_or_default());
        let candidates = (0..per_year)
            .flat_map(|offset| [first - 1, first, first + 1].map(|first_year| (offset, first_year)));
        let best = candidates.max_by_key(|(offset, first_year)| {
            let agreeing = (0..years.len()).filter(|index| {
                let (whole_years, rest) = divided[*index];
                Some(first_year + whole_years + i64::from(rest + offset >= per_year)) == years[*index]
            });
            let (all, new) =
                agreeing.fold((0, 0), |(all, new), index| (all + 1, new + i32::from(index >= newest)));
            (all, new, -offset)
        });
        let (offset, first_year) = best.unwrap_or((0, first));
        Self { slots, calendar_years: years, per_year, offset, first_year }
    }

    fn year_of(&self, slot: i64) -> Option<i32> {
        let year = self.first_year + (slot + self.offset).div_euclid(self.per_year);
        i32::try_from(year).ok()
    }

    /// Index of the first row after which the payer moved its payments: of the payments of two years, more than 1.5 years'
    /// worth are outside their calendar year. `None` if no two years are so.
    fn first_moved(&self) -> Option<usize> {
        let is_outside = |(slot, year): (&i64, &Option<i64>)| {
            year.is_some_and(|year| self.year_of(*slot).map(i64::from) != Some(year))
        };
        let outside: Vec<bool> = self.slots.iter().zip(&self.calendar_years).map(is_outside).collect();
        let per_year = usize::try_from(self.per_year).ok()?;
        let count = |years: &[bool]| years.iter().filter(|is_outside| **is_outside).count();
        let from = outside.windows(2 * per_year).position(|years| 2 * count(years) > 3 * per_year)?;
        let first = from + outside[from..].iter().position(|is_outside| *is_outside)?;
        // If the oldest rows are outside, the payer moved its payments at the first row inside.
        if first > 0 { Some(first) } else { outside.iter().position(|is_outside| !is_outside) }
    }

    fn report_missing(&self, run: &[&mut Reading], missing: &mut Vec<MissingSlot>, rules: &ScheduleRules) {
        let Ok(per_year) = i32::try_from(self.per_year) else { return };
        if per_year < NOTICED_FROM {
            return;
        }
        for (pair, slots) in run.windows(2).zip(self.slots.windows(2)) {
            let count = slots[1] - slots[0] - 1;
            if count == 0 {
                continue;
            }
            let (before, after) = (pair[0].sustained, pair[1].sustained);
            let assumed = (count <= rules.assumed_slots).then(|| before.min(after));
            let goes_on = after >= before.saturating_mul(NO_LOWER);
            if assumed.is_none() && !goes_on {
                continue;
            }
            let between = slots[0] + 1..slots[1];
            let years = between.filter_map(|slot| self.year_of(slot));
            missing.extend(years.map(|year| MissingSlot { year, per_year, assumed }));
        }
    }
}

/// Calendar years with which the dividend years of the rows should agree.
fn calendar_years(run: &[&mut Reading], rules: &ScheduleRules) -> Vec<Option<i64>> {
    let year = |date: NaiveDate| i64::from(date.year());
    let paid = run.iter().filter(|reading| reading.payment_date.is_some()).count();
    if rules.year_of == 1 && 2 * paid >= run.len() {
        return run.iter().map(|reading| reading.payment_date.map(year)).collect();
    }
    run.iter().map(|reading| Some(year(reading.ex_date))).collect()
}

fn number_slots(run: &[&mut Reading], per_year: i32) -> Vec<i64> {
    let mut slots = Vec::with_capacity(run.len());
    let (mut slot, mut carried) = (0, 0);
    slots.push(slot);
    for pair in run.windows(2) {
        let days = (pair[1].ex_date - pair[0].ex_date).num_days();
        let periods = PeriodThousandths::in_days(days, per_year).0 + carried;
        let steps = if periods < MISSING_FROM { 1 } else { (periods + 500) / 1000 };
        // Half of the deviation moves to the next gap, because an early or late row changes both gaps.
        carried = ((periods - 1000 * steps) / 2).clamp(-500, 500);
        slot += steps;
        slots.push(slot);
    }
    slots
}
