//! Tests of the thresholds of a payment schedule. The thresholds are numbers of days and ratios of amounts. They decide
//! about these cases:
//! - Repeat: a second row of the same payment.
//! - Extra row: a row whose whole amount is special.
//! - Combined row: a row with a regular and a special part.
//! - Dip: a row below both neighbours.
//! - Missing payment: a slot (the period of one regular payment) without a row.

use super::*;
use crate::metrics::dividends::schedule::{RepeatedPayment, find_repeats};

/// Starts with six quarterly payments of 1.00. Adds a row of `amount`, `days` days after the second payment. Returns
/// each repeat as the indexes of the dropped and the kept row.
fn repeats(days: i64, amount: Decimal, change: impl Fn(&mut [RepeatedPayment<'_>])) -> Vec<(usize, usize)> {
    let mut rows = quarterly("2019-02-14", &[dec!(1); 6]);
    let ex_date = rows[1].ex_date + TimeDelta::days(days);
    rows.insert(2, ScheduleRow { ex_date, amount, ..rows[1] });
    repeats_among(&rows, change)
}

fn repeats_among(rows: &[ScheduleRow], change: impl Fn(&mut [RepeatedPayment<'_>])) -> Vec<(usize, usize)> {
    let payment = |row: &ScheduleRow| RepeatedPayment {
        row: *row,
        id: None,
        implied: None,
        is_business_day: crate::metrics::calendar::is_session(row.ex_date),
        is_in_price: false,
    };
    let mut payments: Vec<RepeatedPayment<'_>> = rows.iter().map(payment).collect();
    change(&mut payments);
    find_repeats(&payments, &Rules::DEFAULT.schedule).iter().map(|pair| (pair.dropped, pair.kept)).collect()
}

#[test]
fn a_repeat_has_an_equal_or_double_amount_within_days() {
    let is_repeat = |days: i64, amount: Decimal| !repeats(days, amount, |_| ()).is_empty();
    // The second payment is on Tuesday, 14 May 2019. A repeat is at most 20 days later. Its amount is equal, double or
    // half, with a tolerance of 2 %.
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
    // For a monthly payer, the limit is a week (a quarter of the period). A row a fortnight after a payment is another
    // payment.
    let monthly = |days: i64| {
        let mut rows = every(1, "2019-02-14", &[dec!(1); 8]);
        rows.insert(4, ScheduleRow { ex_date: rows[3].ex_date + TimeDelta::days(days), ..rows[3] });
        repeats_among(&rows, |_| ())
    };
    assert_eq!([6, 7, 8, 14].map(monthly), [vec![(3, 4)], vec![(3, 4)], vec![], vec![]]);
    let after = |days: i64, gap: i64| {
        repeats_among(&spaced(&[30, 30, 30, 30, days, gap - days, 30, 30]), |_| ()).len()
    };
    assert_eq!([after(7, 33), after(8, 33), after(25, 33), after(26, 33)], [1, 0, 0, 1]);
}

#[test]
fn a_repeat_of_an_irregular_payer_has_an_equal_amount() {
    let is_repeat = |days: i64, amount: Decimal| {
        let mut rows = rows("2020-01-20 3.5\n2020-06-27 9\n2021-04-10 2\n2022-04-08 3\n2022-07-08 5");
        assert_eq!(read(&rows).readings[0].per_year, None);
        rows.insert(1, ScheduleRow { ex_date: rows[0].ex_date + TimeDelta::days(days), amount, ..rows[0] });
        !repeats_among(&rows, |_| ()).is_empty()
    };
    assert_eq!([1, 20, 21].map(|days| is_repeat(days, dec!(3.5))), [true, true, false]);
    assert_eq!(
        [dec!(3.57), dec!(3.571), dec!(3.432), dec!(3.431)].map(|amount| is_repeat(1, amount)),
        [true, false, true, false]
    );
    // For an irregular payer, a row with double or half the amount may be another payment. Such a row is not a repeat.
    assert_eq!([dec!(7), dec!(1.75)].map(|amount| is_repeat(1, amount)), [false, false]);
    // Repeats are found only if the median gap is at least 40 days (twice the limit). Weekly payers therefore have
    // none.
    let spaced = |gaps: &[i64]| repeats_among(&spaced(gaps), |_| ()).len();
    assert_eq!([spaced(&[12, 40, 90, 40]), spaced(&[12, 39, 90, 39])], [1, 0]);
    assert_eq!([spaced(&[7, 7, 7, 7]), spaced(&[7, 2, 5, 7, 7]), spaced(&[7])], [0, 0, 0]);
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
    // The second payment is on Tuesday, 14 May 2019. Six days later is a Monday, five days later a Sunday.
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
    // The payment after a combined row must be 0.8 to 1.7 times the payment before that row.
    assert_eq!([dec!(0.79), dec!(0.8), dec!(1.7), dec!(1.71)].map(|next| read(dec!(5), next)), [0, 1, 1, 0]);
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
fn a_newest_row_is_extra_if_it_is_off_schedule() {
    let read = |months: u32, days: i64, amount: Decimal| {
        let mut rows = every(months, "2019-02-15", &[dec!(1); 5]);
        let ex_date = rows[4].ex_date + TimeDelta::days(days);
        rows.push(ScheduleRow { ex_date, amount, ..rows[4] });
        read(&rows).readings[5].kind == AmountReading::Special
    };
    assert_eq!([dec!(0.7), dec!(1), dec!(1.3), dec!(4)].map(|amount| read(3, 40, amount)), [true; 4]);
    assert_eq!([54, 55].map(|days| read(3, days, dec!(1))), [true, false]);
    assert_eq!([14, 18, 19].map(|days| read(1, days, dec!(1))), [true, true, false]);
    // A half-yearly or yearly payer may begin to pay twice as often.
    assert_eq!([72, 73, 74, 109].map(|days| read(6, days, dec!(1))), [true, true, false, false]);
    assert_eq!([146, 147].map(|days| read(12, days, dec!(1))), [true, false]);
}

#[test]
fn of_two_rows_in_a_slot_the_one_on_schedule_is_regular() {
    let read = |days: i64, amount: Decimal| {
        let mut rows = every(1, "2019-02-15", &[dec!(1); 9]);
        let ex_date = rows[4].ex_date + TimeDelta::days(days);
        rows.insert(5, ScheduleRow { ex_date, amount, ..rows[4] });
        peculiar(&rows)
    };
    // The row is a fortnight after a payment. Its amount has no effect.
    for amount in [dec!(1), dec!(0.25), dec!(1.3)] {
        assert_eq!(read(15, amount), ["2019-06-30 special 0"], "{amount}");
    }
    // Both rows are on schedule. The row with the unusual amount is extra.
    assert_eq!(read(5, dec!(1.3)), ["2019-06-20 special 0"]);
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
    // Up to 54.8 days (0.6 of a quarter) after a payment, an extra row is in the slot of that payment. From 55 days on,
    // the extra row is in the slot of the next payment.
    assert_eq!([54, 55, 75].map(|days| read(days).len()), [1, 1, 1]);
    let newest = |days: i64| {
        let mut rows = quarterly("2019-02-15", &[dec!(1); 6]);
        let ex_date = rows[5].ex_date + TimeDelta::days(days);
        rows.push(ScheduleRow { ex_date, amount: dec!(2), ..rows[5] });
        peculiar(&rows).len()
    };
    assert_eq!([54, 55].map(newest), [1, 0]);
}

#[test]
fn of_two_nearly_equal_rows_in_a_slot_few_others_show_no_usual_amount() {
    let read = |first: Decimal, others: &[Decimal]| {
        let mut rows = every(12, "2019-07-12", &[dec!(1.95)]);
        rows.insert(0, ScheduleRow { ex_date: date("2019-07-09"), amount: first, ..rows[0] });
        rows.extend(every(12, "2020-07-12", others));
        peculiar(&rows)
    };
    // The amount of the first row is nearer to the usual 1.5, but the second row is on the schedule. With three other
    // rows, the schedule decides which row is extra. With four other rows, the amounts decide.
    assert_eq!(read(dec!(1.8), &[dec!(1.5); 3]), ["2019-07-09 special 0"]);
    assert_eq!(read(dec!(1.8), &[dec!(1.5); 4]), ["2019-07-12 special 0"]);
    // The amount of the second row is nearer to the usual 1.5, but the first row is on the schedule.
    let mut nearer = every(12, "2019-07-12", &[dec!(1.95), dec!(1.5), dec!(1.5), dec!(1.5)]);
    nearer.insert(1, ScheduleRow { ex_date: date("2019-07-15"), amount: dec!(1.8), ..nearer[0] });
    assert_eq!(peculiar(&nearer), ["2019-07-15 special 0"]);
    // If the two amounts differ by more than 30 %, the amounts decide even with three other rows.
    assert_eq!(read(dec!(1.5), &[dec!(1.5); 3]), ["2019-07-09 special 0"]);
    assert_eq!(read(dec!(1.49), &[dec!(1.5); 3]), ["2019-07-12 special 0"]);
}

#[test]
fn a_slot_may_have_several_extra_rows() {
    let with = |extras: &[(i64, Decimal)]| {
        let mut rows = quarterly("2019-02-15", &[dec!(1); 8]);
        for (days, amount) in extras {
            rows.push(ScheduleRow {
                ex_date: rows[3].ex_date + TimeDelta::days(*days),
                amount: *amount,
                ..rows[3]
            });
        }
        rows.sort_by_key(|row| row.ex_date);
        peculiar(&rows)
    };
    assert_eq!(with(&[(10, dec!(3)), (20, dec!(4))]), ["2019-11-25 special 0", "2019-12-05 special 0"]);
    assert_eq!(with(&[(-20, dec!(3)), (-10, dec!(4))]), ["2019-10-26 special 0", "2019-11-05 special 0"]);
    assert_eq!(with(&[(-10, dec!(3)), (10, dec!(4))]), ["2019-11-05 special 0", "2019-11-25 special 0"]);
    // Of two rows in a slot, the row that differs most from the eight neighbours is extra, even if the other row is off
    // schedule.
    let mut rows = quarterly("2019-02-15", &[dec!(1), dec!(1), dec!(1), dec!(3), dec!(1), dec!(1), dec!(1)]);
    rows.insert(4, ScheduleRow { ex_date: rows[3].ex_date + TimeDelta::days(10), ..rows[0] });
    assert_eq!(peculiar(&rows), ["2019-11-15 special 0"]);
    // The eight neighbours are four rows before and four rows after.
    let mut rows =
        quarterly("2017-02-15", &[[dec!(3); 4].as_slice(), &[dec!(1); 10], &[dec!(3); 4]].concat());
    rows.insert(
        9,
        ScheduleRow { ex_date: rows[8].ex_date + TimeDelta::days(10), amount: dec!(3), ..rows[8] },
    );
    assert_eq!(peculiar(&rows), ["2019-02-25 special 0"]);
    let mut rows = quarterly("2017-02-15", &[&[dec!(3)], [dec!(1); 4].as_slice(), &[dec!(3); 6]].concat());
    rows.insert(
        2,
        ScheduleRow { ex_date: rows[1].ex_date + TimeDelta::days(10), amount: dec!(3), ..rows[1] },
    );
    assert_eq!(peculiar(&rows), ["2017-05-25 special 0"]);
}

#[test]
fn a_payment_may_have_several_repeats() {
    let pairs = |days: &[i64]| {
        let mut rows = quarterly("2019-02-14", &[dec!(1); 6]);
        rows.extend(
            days.iter()
                .map(|days| ScheduleRow { ex_date: rows[2].ex_date + TimeDelta::days(*days), ..rows[2] })
                .collect::<Vec<_>>(),
        );
        rows.sort_by_key(|row| row.ex_date);
        repeats_among(&rows, |_| ())
    };
    // If all rows of a payment are on trading days, the last row is kept.
    assert_eq!(pairs(&[5, 12]), [(3, 4), (2, 4)]);
    assert_eq!(pairs(&[6, 97]), [(2, 3), (4, 5)]);
    assert_eq!(pairs(&[]), []);
}

#[test]
fn a_distribution_of_capital_has_no_regular_part_and_no_slot() {
    let mut rows = quarterly("2019-02-15", &[dec!(1), dec!(1), dec!(1), dec!(1), dec!(40)]);
    let doubted = |rows: &mut [ScheduleRow], doubt| {
        rows[4].doubt = Some(doubt);
        peculiar(rows)
    };
    assert_eq!(doubted(&mut rows, AmountDoubt::Unconfirmed), ["2020-02-15 combined 1"]);
    assert_eq!(doubted(&mut rows, AmountDoubt::Capital), ["2020-02-15 special 0"]);
    let schedule = read(&rows);
    assert_eq!((schedule.readings[4].regular, schedule.regular().count()), (dec!(0), 4));
    // Once a later payment exists, the regular payment in the slot of the distribution counts as missing.
    rows.extend(quarterly("2020-05-15", &[dec!(1)]));
    let missing = MissingSlot { year: 2020, per_year: 4, assumed: Some(dec!(1)) };
    assert_eq!(read(&rows).missing, [missing]);
}

#[test]
fn a_payer_of_yearly_specials_adds_its_capital_to_a_regular_row() {
    let read = |days: i64, doubt: Option<AmountDoubt>| {
        let mut rows = quarterly("2019-02-15", &[dec!(1); 9]);
        rows[8].ex_date = rows[4].ex_date + TimeDelta::days(days);
        (rows[4].amount, rows[4].doubt) = (dec!(12), doubt);
        (rows[8].amount, rows[8].doubt) = (dec!(40), Some(AmountDoubt::Capital));
        read(&rows).readings[8].kind
    };
    let found = [334, 335, 395, 396].map(|days| read(days, Some(AmountDoubt::Unconfirmed)));
    let (special, combined) = (AmountReading::Special, AmountReading::Combined);
    assert_eq!(found, [special, combined, combined, special]);
    assert_eq!([read(365, Some(AmountDoubt::Capital)), read(365, None)], [combined, special]);
}

#[test]
fn missing_slots_before_a_lower_rate_or_beyond_550_days_are_a_pause() {
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
    assert_eq!(missing(3, dec!(1)), [None, None, None]);
    assert_eq!(missing(4, dec!(1)), [None, None, None, None]);
    assert_eq!(missing(3, dec!(0.979)), []);
    // A gap of more than 550 days is a pause.
    assert_eq!(missing(6, dec!(1)), []);
    // With three or fewer payments a year, a missing payment is not detected.
    let mut halves = every(6, "2012-02-15", &[dec!(1); 12]);
    halves.remove(5);
    assert!(read(&halves).missing.is_empty());
}
