//! Bounds of the readings: repeats, extras, parts, missing slots and local frequencies.

use super::*;
use crate::event::Frequency;
use crate::metrics::dividends::schedule::{RepeatedPayment, find_repeats, local_frequencies};

/// Pairs (dropped, kept) among four quarterly payments of 1 and a repeat of the second, some days after it.
fn repeats(days: i64, amount: Decimal, change: impl Fn(&mut [RepeatedPayment<'_>])) -> Vec<(usize, usize)> {
    let mut rows = quarterly("2019-02-14", &[dec!(1); 6]);
    let ex_date = rows[1].ex_date + TimeDelta::days(days);
    rows.insert(2, ScheduleRow { ex_date, amount, ..rows[1] });
    let payment =
        |row: &ScheduleRow| RepeatedPayment { row: *row, id: None, implied: None, is_in_price: false };
    let mut payments: Vec<RepeatedPayment<'_>> = rows.iter().map(payment).collect();
    change(&mut payments);
    find_repeats(&payments, &Rules::DEFAULT).iter().map(|pair| (pair.dropped, pair.kept)).collect()
}

#[test]
fn a_repeat_has_an_equal_or_double_amount_within_days() {
    let is_repeat = |days: i64, amount: Decimal| !repeats(days, amount, |_| ()).is_empty();
    // 2019-05-14 is a Tuesday; 20 days are the limit, and 2 % of the smaller amount.
    assert_eq!([5, 20, 21].map(|days| is_repeat(days, dec!(1))), [true, true, false]);
    for (amount, expected) in [
        (dec!(1.02), true),
        (dec!(1.021), false),
        (dec!(0.981), true),
        (dec!(0.98), false),
        (dec!(2), true),
        (dec!(2.04), true),
        (dec!(2.041), false),
        (dec!(0.5), true),
        (dec!(1.5), false),
    ] {
        assert_eq!(is_repeat(6, amount), expected, "{amount}");
    }
}

#[test]
fn ids_of_one_source_that_differ_are_two_payments() {
    let with = |first: Option<(&'static str, &'static str)>, second: Option<(&'static str, &'static str)>| {
        repeats(6, dec!(1), |payments| (payments[1].id, payments[2].id) = (first, second)).len()
    };
    assert_eq!(with(Some(("a", "1")), Some(("a", "2"))), 0);
    assert_eq!(with(Some(("a", "1")), Some(("a", "1"))), 1);
    assert_eq!(with(Some(("a", "1")), Some(("b", "2"))), 1);
    assert_eq!(with(Some(("a", "1")), None), 1);
}

#[test]
fn the_better_of_two_rows_stays() {
    // Six days after a Tuesday is a Monday, five days a Sunday.
    let stays = |days: i64, change: &dyn Fn(&mut [RepeatedPayment<'_>])| {
        repeats(days, dec!(1), change).first().map(|(_, kept)| *kept)
    };
    assert_eq!(stays(6, &|_| ()), Some(2), "the later one");
    assert_eq!(stays(5, &|_| ()), Some(1), "the session");
    assert_eq!(stays(6, &|payments| payments[1].is_in_price = true), Some(1));
    assert_eq!(stays(6, &|payments| payments[2].is_in_price = true), Some(2));
    assert_eq!(stays(6, &|payments| payments[1].implied = Some(payments[1].row.ex_date)), Some(1));
    assert_eq!(stays(6, &|payments| payments[1].implied = Some(payments[2].row.ex_date)), Some(2));
}

#[test]
fn a_combined_row_is_at_least_1_3_times_both_neighbours() {
    let read = |amount: Decimal, next: Decimal| {
        peculiar(&quarterly("2019-02-15", &[dec!(1), dec!(1), dec!(1), amount, next, next, next])).len()
    };
    assert_eq!([dec!(1.29), dec!(1.3)].map(|amount| read(amount, dec!(1))), [0, 1]);
    // The next payment is 0.8 to 1.5 times the one before.
    assert_eq!([dec!(0.79), dec!(0.8), dec!(1.5), dec!(1.51)].map(|next| read(dec!(5), next)), [0, 1, 1, 0]);
}

#[test]
fn a_dip_is_below_0_98_of_both_neighbours() {
    let read = |amount: Decimal, next: Decimal| {
        peculiar(&quarterly("2019-02-15", &[dec!(1), dec!(1), dec!(1), amount, next, next, next])).len()
    };
    assert_eq!([dec!(0.979), dec!(0.98)].map(|amount| read(amount, dec!(1))), [1, 0]);
    assert_eq!([dec!(0.979), dec!(0.98)].map(|next| read(dec!(0.5), next)), [0, 1]);
    // An annual payer has no dip.
    let annual = every(12, "2010-03-15", &[dec!(1), dec!(1), dec!(1), dec!(0.5), dec!(1), dec!(1), dec!(1)]);
    assert!(peculiar(&annual).is_empty());
}

#[test]
fn a_newest_row_is_extra_if_its_amount_differs_by_more_than_30_percent() {
    let read = |amount: Decimal| {
        let mut rows = quarterly("2019-02-15", &[dec!(1); 5]);
        let ex_date = rows[4].ex_date + TimeDelta::days(40);
        rows.push(ScheduleRow { ex_date, amount, ..rows[4] });
        peculiar(&rows)
    };
    assert!(read(dec!(1.3)).is_empty() && read(dec!(0.8)).is_empty());
    assert_eq!(read(dec!(1.31)), ["2020-03-26 special 0"]);
    assert_eq!(read(dec!(0.7)), ["2020-03-26 special 0"]);
}

#[test]
fn of_two_equal_rows_in_a_slot_the_one_off_schedule_is_extra() {
    let read = |days: i64| {
        let mut rows = quarterly("2019-02-15", &[dec!(1); 6]);
        let at = usize::from(days > 0) + 2;
        rows.insert(at, ScheduleRow { ex_date: rows[2].ex_date + TimeDelta::days(days), ..rows[2] });
        peculiar(&rows)
    };
    assert_eq!(read(30), ["2019-09-14 special 0"]);
    assert_eq!(read(-30), ["2019-07-16 special 0"]);
}

#[test]
fn missing_slots_beyond_half_a_year_or_before_a_lower_rate_are_a_pause() {
    let missing = |count: usize, after: Decimal| {
        let mut rows = quarterly("2015-02-15", &[dec!(1); 16]);
        rows.drain(8..8 + count);
        rows[8..].iter_mut().for_each(|row| row.amount = after);
        let found = read(&rows).missing;
        found.iter().map(|slot| slot.assumed).collect::<Vec<_>>()
    };
    assert_eq!(missing(1, dec!(0.5)), [Some(dec!(0.5))]);
    assert_eq!(missing(2, dec!(1)), [None, None]);
    assert_eq!(missing(2, dec!(0.98)), [None, None]);
    assert_eq!(missing(2, dec!(0.979)), []);
    assert_eq!(missing(3, dec!(1)), []);
    // Of three and fewer payments a year, no payment is missed.
    let mut halves = every(6, "2012-02-15", &[dec!(1); 12]);
    halves.remove(5);
    assert!(read(&halves).missing.is_empty());
}

#[test]
fn a_tag_decides_where_gaps_do_not() {
    let tagged = |days: i64, count: usize, tag: Option<Frequency>| {
        let row = |n: i64| ScheduleRow {
            ex_date: date("2019-02-15") + TimeDelta::days(days * n),
            amount: dec!(1),
            tag,
            is_unconfirmed: false,
        };
        let rows: Vec<ScheduleRow> = (0..).take(count).map(row).collect();
        local_frequencies(&rows, &Rules::DEFAULT)[0]
    };
    assert_eq!(tagged(91, 1, None), None);
    assert_eq!(tagged(91, 1, Some(Frequency::Quarterly)), Some(4));
    assert_eq!(tagged(91, 1, Some(Frequency::Monthly)), Some(12));
    assert_eq!(tagged(91, 1, Some(Frequency::Weekly)), None);
    assert_eq!(tagged(91, 6, None), Some(4));
    assert_eq!(tagged(17, 9, None), None, "frequent");
    assert_eq!(tagged(30, 9, None), Some(12));
    assert_eq!(tagged(28, 9, None), None, "every four weeks");
    assert_eq!(tagged(28, 6, None), Some(12), "too few gaps for four weeks");
    assert_eq!(tagged(28, 7, None), None);
}
