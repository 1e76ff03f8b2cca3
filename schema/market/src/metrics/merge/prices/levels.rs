//! Price levels: bars far from their neighbours, runs of bars in a wrong unit, and lasting breaks (R36).
//!
//! A leap is a move between adjacent bars by more than `level.factor`, up or down. Bars more than seven days
//! apart are not adjacent. The move must also exceed the factor after adjustment. The adjustment covers the known
//! splits, price-only actions (R35) and payments between the two bars.
//!
//! A unit leap is a leap with a factor of about 100 or 1,000, after adjustment. A leap next to a large split is not a
//! unit leap. A large split is a known split or price-only action with a ratio above `level.factor`. Its ex-date is at
//! most seven days from the leap.
//!
//! There are four cases:
//! - Isolated bar: a single bar between two leaps. The first leap is not a unit leap. The bars before and after the
//!   single bar agree.
//! - Wrong unit, enclosed: one or more bars between two leaps. The first leap is a unit leap. The bars before and after
//!   the enclosed bars agree.
//! - Wrong unit, newest: the bars after the last leap, which is a unit leap. There are at least two and at most
//!   60 of these bars. There are fewer of them than correct bars before the leap.
//! - Lasting break: every other leap. A move of the same size between neighbouring bars that are not adjacent is a
//!   lasting break too, however long the time between them.
//!
//! Two bars agree if their closes differ by at most 50 percent, after adjustment.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::day::{date_of, day_number};
use crate::metrics::arithmetic::{exact, quotient, within_factor};
use crate::metrics::prices::adjustment::Splits;
use crate::metrics::prices::series::ADJACENT_DAYS;
use crate::metrics::rules::LevelRules;

/// Ratios of a wrong unit to the correct unit, for example 100 for pence instead of pounds.
const UNITS: [i64; 2] = [100, 1000];
/// Closes that differ by at most this factor agree.
const AGREEMENT: Decimal = exact("1.5");
/// Maximum deviation of a move to a wrong unit from the ratio of the units, as a factor.
const UNIT_TOLERANCE: Decimal = exact("1.15");
/// Maximum number of newest bars in a wrong unit. A longer run is a lasting move of the price.
const UNIT_RUN_SESSIONS: usize = 60;

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
                let is_short = run > 1 && run < start - faults.len() && run <= UNIT_RUN_SESSIONS;
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

    /// True if two closes on one share basis differ by at most [`AGREEMENT`].
    pub(crate) fn is_near(&self, a: Decimal, b: Decimal) -> bool {
        within_factor(a, b, AGREEMENT)
    }

    fn is_leap(&self, bars: Closes<'_>, before: usize, after: usize) -> bool {
        self.are_adjacent(bars, before, after) && self.is_far(bars, before, after)
    }

    fn are_adjacent(&self, bars: Closes<'_>, before: usize, after: usize) -> bool {
        bars.days[after] - bars.days[before] <= ADJACENT_DAYS
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

    /// True if two closes differ by at most [`AGREEMENT`], after adjustment for the splits and payments between
    /// them.
    pub(crate) fn agree(&self, bars: Closes<'_>, before: usize, after: usize) -> bool {
        self.carried(bars, before, after).is_some_and(|carried| self.is_near(carried, close(bars, after)))
    }

    /// Returns 100 or 1,000 if the leap to the bar at `after` has about this factor. `None` if the leap has another
    /// factor, or if a known split near the leap explains it.
    fn unit_error_factor(&self, bars: Closes<'_>, after: usize) -> Option<i64> {
        let (old, new) = (self.carried(bars, after - 1, after)?, close(bars, after));
        let times = quotient(old.max(new), old.min(new))?;
        let unit =
            UNITS.into_iter().find(|unit| within_factor(times, Decimal::from(*unit), UNIT_TOLERANCE))?;
        let is_explained = self.splits.events().iter().any(|event| {
            let apart = (day_number(event.ex_date) - bars.days[after]).abs();
            apart <= ADJACENT_DAYS && !within_factor(event.ratio.from, event.ratio.to, self.rules.factor)
        });
        (!is_explained).then_some(unit)
    }
}

fn close(bars: Closes<'_>, index: usize) -> Decimal {
    Decimal::new(bars.closes[index], bars.scale)
}

#[cfg(test)]
mod tests {
    use super::super::column_scan::find_large_moves;
    use super::*;
    use crate::metrics::prices::adjustment::{Ratio, SplitEvent};
    use crate::metrics::rules::Rules;

    const FIRST: i32 = 738_000;

    fn check_with<T>(splits: &Splits, paid: i64, check: impl Fn(&LevelCheck<'_>) -> T) -> T {
        let paid = |_: NaiveDate, through: NaiveDate| {
            if day_number(through) == FIRST + 2 { Decimal::from(paid) } else { Decimal::ZERO }
        };
        check(&LevelCheck { rules: &Rules::DEFAULT.level, splits, paid: &paid })
    }

    fn with_moves<T>(closes: &[i64], days: &[i32], check: impl FnOnce(Closes<'_>) -> T) -> T {
        check(Closes { closes, days, scale: 0, large_moves: &find_large_moves(closes) })
    }

    fn days(closes: &[i64]) -> Vec<i32> {
        (FIRST..).take(closes.len()).collect()
    }

    fn faulty(closes: &[i64]) -> Vec<(usize, LevelFault)> {
        let days = days(closes);
        check_with(&Splits::default(), 0, |check| {
            with_moves(closes, &days, |closes| check.find_faults(closes)).into_iter().collect()
        })
    }

    #[test]
    fn a_bar_far_from_both_neighbours_is_isolated() {
        use LevelFault::{Isolated, WrongUnit};
        for (close, fault) in [
            (300, None),
            (301, Some(Isolated)),
            (730, Some(Isolated)),
            (8_695, Some(Isolated)),
            (8_696, Some(WrongUnit(100))),
            (11_500, Some(WrongUnit(100))),
            (11_501, Some(Isolated)),
            (100_000, Some(WrongUnit(1000))),
            (1_000_000, Some(Isolated)),
            (34, None),
            (33, Some(Isolated)),
            (1, Some(WrongUnit(100))),
        ] {
            let expected: Vec<(usize, LevelFault)> = fault.map(|fault| (2, fault)).into_iter().collect();
            assert_eq!(faulty(&[100, 100, close, 100, 100]), expected, "{close}");
        }
        // The neighbours agree within 50 %.
        assert_eq!(faulty(&[100, 500, 150]), [(1, Isolated)]);
        assert_eq!(faulty(&[100, 500, 151]), vec![]);
        // A lasting move, and a move that ends after two sessions.
        assert_eq!(faulty(&[100, 100, 400, 400, 400]), vec![]);
        assert_eq!(faulty(&[100, 100, 400, 400, 100, 100]), vec![]);
        assert_eq!(faulty(&[100, 1_000, 100, 1_000, 100]), [(1, Isolated), (3, Isolated)]);
    }

    #[test]
    fn a_run_in_a_wrong_unit_is_between_agreeing_bars_or_short_and_newest() {
        let unit = |range: std::ops::Range<usize>| -> Vec<(usize, LevelFault)> {
            range.map(|index| (index, LevelFault::WrongUnit(100))).collect()
        };
        assert_eq!(faulty(&[100, 101, 10_000, 10_100, 10_050, 102]), unit(2..5));
        assert_eq!(faulty(&[60_000, 60_100, 61_000, 61_200, 60_960, 585, 587, 573]), unit(5..8));
        // A single newest bar is not a run. A run as long as the data before it is a lasting move.
        assert_eq!(faulty(&[100, 101, 102, 10_000]), []);
        assert_eq!(faulty(&[100, 101, 10_000, 10_100]), []);
        let long: Vec<i64> = [vec![100; 100], vec![10_000; 61]].concat();
        assert_eq!(faulty(&long), []);
        assert_eq!(faulty(&long[..160]), unit(100..160));
    }

    #[test]
    fn known_events_are_no_leaps() {
        let ratio = Ratio { from: Decimal::ONE, to: Decimal::from(10) };
        let split = Splits::new(vec![SplitEvent::of_shares(date_of(FIRST + 2), ratio)]);
        let leaps = |splits: &Splits, paid: i64, closes: &[i64]| {
            let days = days(closes);
            check_with(splits, paid, |check| with_moves(closes, &days, |closes| check.find_leaps(closes)))
        };
        let none = Splits::default();
        assert_eq!(leaps(&none, 0, &[100, 100, 10, 10]), [2]);
        assert!(leaps(&split, 0, &[100, 100, 10, 10]).is_empty());
        assert!(leaps(&none, 80, &[100, 100, 15, 15]).is_empty());
        assert!(leaps(&none, 100, &[100, 100, 15, 15]).is_empty());
        // A constant price is not a leap, even if a split says that the price should have moved.
        assert!(leaps(&split, 0, &[100, 100, 100, 100]).is_empty());
        // A hundredfold move next to a split is not a wrong unit.
        let closes = [vec![10; 5], vec![1_000; 3]].concat();
        let days = days(&closes);
        let merged = Ratio { from: Decimal::ONE_HUNDRED, to: Decimal::ONE };
        let early = Splits::new(vec![SplitEvent::of_shares(date_of(FIRST + 3), merged)]);
        let found =
            check_with(&early, 0, |check| with_moves(&closes, &days, |closes| check.find_faults(closes)));
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn bars_more_than_a_week_apart_are_not_adjacent() {
        let leaps = |apart: i32| {
            let days = [FIRST, FIRST + apart, FIRST + apart + 1];
            check_with(&Splits::default(), 0, |check| {
                with_moves(&[100, 400, 400], &days, |closes| check.find_leaps(closes))
            })
        };
        assert_eq!((leaps(7), leaps(8)), (vec![1], vec![]));
    }

    #[test]
    fn a_move_over_a_pause_is_a_lasting_break() {
        for (apart, close, expected) in [
            (7, 301, false),
            (8, 300, false),
            (8, 301, true),
            (3_000, 301, true),
            (3_000, 34, false),
            (3_000, 33, true),
        ] {
            let days = [FIRST, FIRST + apart, FIRST + apart + 1];
            let found = check_with(&Splits::default(), 0, |check| {
                with_moves(&[100, close, close], &days, |closes| check.has_distant_break(closes))
            });
            assert_eq!(found, expected, "{apart} {close}");
        }
        // A known split explains the move.
        let ratio = Ratio { from: Decimal::ONE, to: Decimal::from(10) };
        let split = Splits::new(vec![SplitEvent::of_shares(date_of(FIRST + 30), ratio)]);
        let found = check_with(&split, 0, |check| {
            with_moves(&[100, 10, 10], &[FIRST, FIRST + 60, FIRST + 61], |closes| {
                check.has_distant_break(closes)
            })
        });
        assert!(!found);
    }
}
