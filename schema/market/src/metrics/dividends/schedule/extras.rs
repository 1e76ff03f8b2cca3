//! Extra rows of a payment schedule (R34.2): rows whose whole amount is special. There are two kinds:
//! - Distribution of capital: the amount is at least a quarter of the price. It is also doubtful (far above the earlier
//!   amounts, R28).
//! - Surplus row: a slot (the period of one regular payment) contains two rows. The row that is off schedule is extra,
//!   whatever its amount. If both rows are on schedule, or neither is, the row whose amount is farther from the usual
//!   amount is extra. If the amounts do not decide either, the row that fits the schedule less well is extra.
//!
//! The newest row is extra too, if the row before it is on schedule and the two share a slot. There are two exceptions:
//! - A payer with one or two payments a year may begin to pay twice as often. Its newest row is regular if the gap
//!   before it is about half a period.
//! - Some bond funds pay twice in December and not in January. The newest row is regular if another row about a year
//!   earlier was as close to its predecessor.
//!
//! There is one exception to the first kind. The row is not extra if another row about a year earlier also has a
//! doubtful amount. Such a payer probably adds a special part to a regular payment every year.

use std::cmp::Ordering;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::frequency::PeriodThousandths;
use super::parts::has_yearly;
use super::reading::{AmountDoubt, Reading, ScheduleRow};
use crate::metrics::arithmetic::{exact, median};
use crate::metrics::rules::ScheduleRules;
use crate::row::AmountReading;

/// Maximum number of rows before and after a pair of rows, from which the usual amount is computed.
const NEAREST: usize = 4;
/// Difference above which two amounts differ clearly, percent of the smaller amount.
const DIFFERENT: Decimal = exact("30");
/// Gap of about half a period, in thousandths of a period.
const HALF_PERIOD: std::ops::RangeInclusive<i64> = 400..=600;

/// Marks the extra rows in `readings` as special, without a regular part. Returns their ex-dates. `doubted` contains
/// the ex-dates of all rows with a doubtful amount.
pub(crate) fn mark_extras(
    readings: &mut [Reading],
    rows: &[ScheduleRow],
    doubted: &[NaiveDate],
    rules: &ScheduleRules,
) -> Vec<NaiveDate> {
    // If doubtful amounts recur every year, they probably are regular payments with a special part.
    let is_capital = |index: &usize| {
        let row = &rows[*index];
        row.doubt == Some(AmountDoubt::Capital) && !has_yearly(row.ex_date, doubted)
    };
    let (mut extras, mut kept): (Vec<usize>, Vec<usize>) = (0..rows.len()).partition(is_capital);
    let mut position = 0;
    while position < kept.len() {
        if let Some(extra) = extra_of(readings, &kept, position, rules) {
            extras.push(kept.remove(extra));
            position = position.saturating_sub(2);
        } else {
            position += 1;
        }
    }
    for index in &extras {
        let reading = &mut readings[*index];
        (reading.regular, reading.sustained) = (Decimal::ZERO, Decimal::ZERO);
        reading.kind = AmountReading::Special;
    }
    extras.iter().map(|index| rows[*index].ex_date).collect()
}

/// Checks the rows at `position` and `position + 1` in `kept`. Returns the position of the extra row; `None` if neither
/// is extra.
fn extra_of(readings: &[Reading], kept: &[usize], position: usize, rules: &ScheduleRules) -> Option<usize> {
    let at = |position: usize| kept.get(position).map(|index| &readings[*index]);
    let (first, second) = (at(position)?, at(position + 1)?);
    let per_year = first.per_year.filter(|per_year| Some(*per_year) == second.per_year)?;
    let dates = [
        position.checked_sub(1).and_then(at).map(|reading| reading.ex_date),
        Some(first.ex_date),
        Some(second.ex_date),
        at(position + 2).map(|reading| reading.ex_date),
    ];
    let differs = || {
        let (large, small) = (first.amount.max(second.amount), first.amount.min(second.amount));
        (large - small) * Decimal::ONE_HUNDRED > small * DIFFERENT
    };
    if !shares_slot(dates, per_year, rules) {
        return None;
    }
    let on_schedule = on_schedule(dates, per_year, rules);
    if dates[3].is_none()
        && !on_schedule[1]
        && recurs_yearly(readings, &kept[..=position + 1], per_year, rules)
    {
        return None;
    }
    match on_schedule {
        [true, false] => return Some(position + 1),
        [false, true] => return Some(position),
        _ => {}
    }
    let others = (position.saturating_sub(NEAREST)..position).chain(position + 2..position + 2 + NEAREST);
    let others: Vec<Decimal> = others.filter_map(at).map(|reading| reading.amount).collect();
    // With fewer than `NEAREST` neighbouring rows, the usual amount is uncertain. In this case, it is used only if the
    // two amounts differ clearly.
    let is_usual_known = others.len() >= NEAREST || differs();
    let usual = median(others)?;
    let distance = |reading: &Reading| (reading.amount - usual).abs();
    let second_is_extra = match distance(second).cmp(&distance(first)) {
        Ordering::Less if is_usual_known => false,
        Ordering::Greater if is_usual_known => true,
        _ => is_second_off_schedule(dates, per_year),
    };
    Some(position + usize::from(second_is_extra))
}

/// True if the newest row of `kept` and another row about a year earlier are both close to their predecessors.
fn recurs_yearly(readings: &[Reading], kept: &[usize], per_year: i32, rules: &ScheduleRules) -> bool {
    let close = kept.windows(2).filter(|pair| {
        let days = (readings[pair[1]].ex_date - readings[pair[0]].ex_date).num_days();
        PeriodThousandths::in_days(days, per_year).0 < rules.slot_share * 10
    });
    let close: Vec<NaiveDate> = close.map(|pair| readings[pair[1]].ex_date).collect();
    close.split_last().is_some_and(|(newest, earlier)| has_yearly(*newest, earlier))
}

/// True if the rows `first` and `second` are in one slot (the period of one regular payment): the rows around them fit
/// the schedule without one of the two.
pub(crate) fn shares_slot(
    [before, first, second, after]: [Option<NaiveDate>; 4],
    per_year: i32,
    rules: &ScheduleRules,
) -> bool {
    let Some((first, second)) = first.zip(second) else { return false };
    let least = rules.slot_share * 10;
    let periods =
        |from: NaiveDate, to: NaiveDate| PeriodThousandths::in_days((to - from).num_days(), per_year);
    if periods(first, second).0 >= least {
        return false;
    }
    // If one of the two rows is left out, the gaps to the rows around them must be about one period.
    let joined_before = before.map(|before| periods(before, second).is_one(least));
    let joined_after = after.map(|after| periods(first, after).is_one(least));
    match (joined_before, joined_after) {
        (_, Some(true)) => true,
        (Some(true), Some(false)) => after.is_some_and(|after| periods(second, after).is_one(least)),
        (Some(joined), None) => {
            let is_twice_as_often = per_year <= 2 && HALF_PERIOD.contains(&periods(first, second).0);
            let first_fits = before.is_some_and(|before| periods(before, first).is_one(least));
            joined || (first_fits && !is_twice_as_often)
        }
        _ => false,
    }
}

/// For the rows `first` and `second` of a slot: true if the row is about one period after `before`, and about one period
/// before `after`.
fn on_schedule(
    [before, first, second, after]: [Option<NaiveDate>; 4],
    per_year: i32,
    rules: &ScheduleRules,
) -> [bool; 2] {
    let is_one = |from: Option<NaiveDate>, to: Option<NaiveDate>| {
        from.zip(to).is_none_or(|(from, to)| {
            PeriodThousandths::in_days((to - from).num_days(), per_year).is_one(rules.slot_share * 10)
        })
    };
    [first, second].map(|row| is_one(before, row) && is_one(row, after))
}

/// True if the first row fits the schedule at least as well as the second row. A row fits well if its gaps to `before`
/// and `after` are about one period.
fn is_second_off_schedule([before, first, second, after]: [Option<NaiveDate>; 4], per_year: i32) -> bool {
    let Some((first, second)) = first.zip(second) else { return true };
    let deviation = |row: NaiveDate| -> i64 {
        let gaps = [before.map(|before| row - before), after.map(|after| after - row)];
        let periods =
            gaps.into_iter().flatten().map(|gap| PeriodThousandths::in_days(gap.num_days(), per_year).0);
        periods.map(|periods| (periods - 1000).abs()).sum()
    };
    deviation(first) <= deviation(second)
}
