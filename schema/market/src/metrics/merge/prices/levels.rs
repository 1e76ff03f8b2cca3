//! Price levels: bars far from their neighbours, runs of bars in a wrong unit, and lasting breaks (R36).
//!
//! A leap is a move between adjacent bars by more than `level.factor`, up or down. Bars more than `level.adjacent_days`
//! apart are not adjacent. The move must also exceed the factor after adjustment. The adjustment covers the known
//! splits, price-only actions (R35) and payments between the two bars.
//!
//! A unit leap is a leap with a factor of about 100 or 1,000, after adjustment. A leap next to a large split is not a
//! unit leap. A large split is a known split or price-only action with a ratio above `level.factor`. Its ex-date is at
//! most `level.adjacent_days` from the leap.
//!
//! There are four cases:
//! - Isolated bar: a single bar between two leaps. The first leap is not a unit leap. The bars before and after the
//!   single bar agree.
//! - Wrong unit, enclosed: one or more bars between two leaps. The first leap is a unit leap. The bars before and after
//!   the enclosed bars agree.
//! - Wrong unit, newest: the bars after the last leap, which is a unit leap. There are at least two and at most
//!   `level.unit_run_sessions` of these bars. There are fewer of them than correct bars before the leap.
//! - Lasting break: every other leap. A move of the same size between neighbouring bars that are not adjacent is a
//!   lasting break too, however long the time between them.
//!
//! Two bars agree if their closes differ by at most `level.agreement`, after adjustment.
//!
//! Fast searches in whole price columns. Their loops have no branches, so that the compiler can vectorize them.
//!
//! A loop does not test each value. It computes a sign bit from each value, combines all sign bits, and tests the
//! result once.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::bars::{BarColumn, Bars};
use crate::day::{date_of, day_number};
use crate::metrics::arithmetic::{quotient, within_factor};
use crate::metrics::prices::adjustment::Splits;
use crate::metrics::rules::LevelRules;

/// Ratios of a wrong unit to the correct unit, for example 100 for pence instead of pounds.
const UNITS: [i64; 2] = [100, 1000];

/// Closes of sorted sessions with their day numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Closes<'a> {
    /// Positive closes x 10^`scale`.
    pub closes: &'a [i64],
    /// Day number of each session.
    pub days: &'a [i32],
    /// Number of decimal places of the closes.
    pub scale: u32,
    /// Indexes of the closes with a large move from the previous close (`find_large_moves`).
    pub large_moves: &'a [usize],
}

/// Fault of a bar, found by comparison of its close with the closes around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LevelFault {
    /// The close is far from the closes of both neighbouring bars.
    Isolated,
    /// The close is too high or too low by about this factor, 100 or 1,000.
    WrongUnit(i64),
}

/// Check of price levels. Moves that known splits and payments explain are not faults.
#[derive(Clone, Copy)]
pub(crate) struct LevelCheck<'a> {
    pub rules: &'a LevelRules,
    /// Splits of the security, and actions that change only its price, such as spin-offs.
    pub splits: &'a Splits,
    /// Function with the parameters `after` and `through`. It returns the sum of the payments with an ex-date after
    /// `after`, up to and including `through`.
    pub paid: &'a dyn Fn(NaiveDate, NaiveDate) -> Decimal,
}

impl LevelCheck<'_> {
    /// Faulty bars by index. A fault of the newest bar alone is not reported, because only the next bar can prove it.
    pub(crate) fn find_faults(&self, bars: Closes<'_>) -> BTreeMap<usize, LevelFault> {
        let (leaps, count) = (self.find_leaps(bars), bars.closes.len());
        let mut faults = BTreeMap::new();
        let mut next = 0;
        while let Some(start) = leaps.get(next).copied() {
            next += 1;
            let unit = self.unit_error_factor(bars, start);
            let Some(end) = leaps.get(next).copied() else {
                let run = count - start;
                let is_short = run > 1 && run < start - faults.len() && run <= self.unit_run_sessions();
                if let Some(unit) = unit.filter(|_| is_short) {
                    faults.extend((start..count).map(|index| (index, LevelFault::WrongUnit(unit))));
                }
                continue;
            };
            if !self.agree(bars, start - 1, end) {
                continue;
            }
            let fault = match unit {
                Some(unit) => LevelFault::WrongUnit(unit),
                None if end - start == 1 => LevelFault::Isolated,
                None => continue,
            };
            faults.extend((start..end).map(|index| (index, fault)));
            next += 1;
        }
        faults
    }

    /// Indexes of the bars with a leap from the previous bar: a move by more than `level.factor`.
    pub(crate) fn find_leaps(&self, bars: Closes<'_>) -> Vec<usize> {
        let moves = bars.large_moves.iter().copied();
        moves.filter(|index| self.is_leap(bars, index - 1, *index)).collect()
    }

    /// True if the close moves by more than `level.factor` between neighbouring bars that are not adjacent.
    pub(crate) fn has_distant_break(&self, bars: Closes<'_>) -> bool {
        let mut moves = bars.large_moves.iter().copied();
        moves.any(|index| !self.are_adjacent(bars, index - 1, index) && self.is_far(bars, index - 1, index))
    }

    /// True if two closes on one share basis differ by at most `level.agreement`.
    pub(crate) fn is_near(&self, a: Decimal, b: Decimal) -> bool {
        within_factor(a, b, Decimal::ONE + self.rules.agreement / Decimal::ONE_HUNDRED)
    }

    fn is_leap(&self, bars: Closes<'_>, before: usize, after: usize) -> bool {
        self.are_adjacent(bars, before, after) && self.is_far(bars, before, after)
    }

    fn are_adjacent(&self, bars: Closes<'_>, before: usize, after: usize) -> bool {
        i64::from(bars.days[after] - bars.days[before]) <= self.rules.adjacent_days
    }

    /// True if the closes of two bars differ by more than `level.factor`, before and after adjustment.
    fn is_far(&self, bars: Closes<'_>, before: usize, after: usize) -> bool {
        let is_far = |a: Decimal, b: Decimal| !within_factor(a, b, self.rules.factor);
        is_far(close(bars, before), close(bars, after))
            && self.carried(bars, before, after).is_some_and(|carried| is_far(carried, close(bars, after)))
    }

    /// Close of the bar at `before`, adjusted for the splits and payments up to the bar at `after`. `None` if the
    /// adjusted close is 0 or less.
    fn carried(&self, bars: Closes<'_>, before: usize, after: usize) -> Option<Decimal> {
        let (from, to) = (date_of(bars.days[before]), date_of(bars.days[after]));
        let carried =
            self.splits.price_ratio_between(from, to).apply(close(bars, before)) - (self.paid)(from, to);
        (carried > Decimal::ZERO).then_some(carried)
    }

    /// True if two closes differ by at most `level.agreement`, after adjustment for the splits and payments between
    /// them.
    pub(crate) fn agree(&self, bars: Closes<'_>, before: usize, after: usize) -> bool {
        self.carried(bars, before, after).is_some_and(|carried| self.is_near(carried, close(bars, after)))
    }

    /// Returns 100 or 1,000 if the leap to the bar at `after` has about this factor. `None` if the leap has another
    /// factor, or if a known split near the leap explains it.
    fn unit_error_factor(&self, bars: Closes<'_>, after: usize) -> Option<i64> {
        let (old, new) = (self.carried(bars, after - 1, after)?, close(bars, after));
        let times = quotient(old.max(new), old.min(new))?;
        let tolerance = Decimal::ONE + self.rules.unit_tolerance / Decimal::ONE_HUNDRED;
        let unit = UNITS.into_iter().find(|unit| within_factor(times, Decimal::from(*unit), tolerance))?;
        let is_explained = self.splits.events().iter().any(|event| {
            let apart = i64::from((day_number(event.ex_date) - bars.days[after]).abs());
            apart <= self.rules.adjacent_days
                && !within_factor(event.ratio.from, event.ratio.to, self.rules.factor)
        });
        (!is_explained).then_some(unit)
    }

    fn unit_run_sessions(&self) -> usize {
        usize::try_from(self.rules.unit_run_sessions).unwrap_or_default()
    }
}

fn close(bars: Closes<'_>, index: usize) -> Decimal {
    Decimal::new(bars.closes[index], bars.scale)
}

const SIGN: u64 = 1 << 63;
/// The fast search of a block is used only if all its closes are below this limit. With larger closes, a sum in the
/// search could reach the sign bit.
const ROOM: u64 = 1 << 61;

/// Number of closes in a block. Most blocks contain no large move (see [`find_large_moves`]), so their closes need not
/// be compared one by one.
const BLOCK: usize = 256;

/// Indexes of the closes that differ from the previous close by more than a factor of 1.375. All closes must be
/// positive.
pub(crate) fn find_large_moves(closes: &[i64]) -> Vec<usize> {
    // The searches for wrong price levels (R36) and missing splits (R30) check only these moves. Their factors are
    // larger.
    let mut moves = Vec::new();
    for start in (1..closes.len()).step_by(BLOCK) {
        let end = closes.len().min(start + BLOCK);
        if !is_calm(&closes[start - 1..end]) {
            moves.extend((start..end).filter(|index| is_large_move(closes[index - 1], closes[*index])));
        }
    }
    moves
}

fn is_large_move(before: i64, after: i64) -> bool {
    let most = |close: i64| close.saturating_add(close >> 2).saturating_add(close >> 3);
    after > most(before) || before > most(after)
}

/// True if a block contains no large move.
fn is_calm(closes: &[i64]) -> bool {
    let pairs = closes.iter().zip(closes.get(1..).unwrap_or_default());
    if closes.iter().fold(0, |all, close| all | close.cast_unsigned()) >= ROOM {
        return pairs.fold(true, |calm, (before, after)| calm & !is_large_move(*before, *after));
    }
    let most = |close: u64| close + (close >> 2) + (close >> 3);
    let above = pairs.fold(0, |above, (before, after)| {
        let (before, after) = (before.cast_unsigned(), after.cast_unsigned());
        above | most(before).wrapping_sub(after) | most(after).wrapping_sub(before)
    });
    above & SIGN == 0
}

/// True if any bar is faulty: its close is not positive, another value is negative, or the high is below the low.
pub(crate) fn has_fault(bars: &Bars) -> bool {
    let not_above_zero = bars.close.iter().fold(0, |found, close| found | close | close.wrapping_sub(1)) < 0;
    not_above_zero
        || [&bars.open, &bars.high, &bars.low, &bars.volume]
            .into_iter()
            .any(|column| has_negative(column.values_from_first_present()))
        || has_crossed(&bars.high, &bars.low)
}

/// True if any value is negative. An absent value, stored as the negative number `MISSING`, does not count.
fn has_negative(column: &[i64]) -> bool {
    // If a value is negative, the value minus one is negative too. `MISSING` is the only exception: it is the smallest
    // value, so the subtraction wraps around.
    column.iter().fold(0, |found, value| found | (value & value.wrapping_sub(1))) < 0
}

/// True if any high is below the low of the same bar. The caller must ensure that no value is negative, except absent
/// values (`MISSING`).
fn has_crossed(highs: &BarColumn, lows: &BarColumn) -> bool {
    // Highs and lows are paired from the newest bar back. The pairs end where one of the columns has no earlier value.
    let pairs =
        highs.values_from_first_present().iter().rev().zip(lows.values_from_first_present().iter().rev());
    pairs.fold(0, |found, (high, low)| found | (high.wrapping_sub(*low) & !high & !low)) < 0
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod column_scan_tests;
