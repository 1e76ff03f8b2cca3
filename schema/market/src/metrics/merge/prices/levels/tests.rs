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
    let found = check_with(&early, 0, |check| with_moves(&closes, &days, |closes| check.find_faults(closes)));
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
        with_moves(&[100, 10, 10], &[FIRST, FIRST + 60, FIRST + 61], |closes| check.has_distant_break(closes))
    });
    assert!(!found);
}
