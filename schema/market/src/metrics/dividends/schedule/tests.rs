mod bounds;
mod frequencies;
mod parts;
mod slots;

use chrono::{Months, TimeDelta};
use rust_decimal::Decimal;

use super::*;
use crate::metrics::dividends::growth::AnnualTotals;
use crate::metrics::rules::Rules;

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

/// Parses rows such as `2024-03-08 0.60` (ex-date and amount), one per line.
fn rows(text: &str) -> Vec<ScheduleRow> {
    let row = |line: &str| {
        let (day, amount) = line.trim().split_once(' ').unwrap();
        ScheduleRow {
            ex_date: date(day),
            amount: amount.parse().unwrap(),
            tag: None,
            doubt: None,
            payment_date: None,
        }
    };
    text.trim().lines().map(row).collect()
}

fn quarterly(first: &str, amounts: &[Decimal]) -> Vec<ScheduleRow> {
    every(3, first, amounts)
}

fn every(months: u32, first: &str, amounts: &[Decimal]) -> Vec<ScheduleRow> {
    let day = |n: u32| date(first).checked_add_months(Months::new(months * n)).unwrap();
    (0..)
        .zip(amounts)
        .map(|(n, amount)| ScheduleRow {
            ex_date: day(n),
            amount: *amount,
            tag: None,
            doubt: None,
            payment_date: None,
        })
        .collect()
}

/// Builds rows with an amount of 1. `gaps` are the days between successive rows.
fn spaced(gaps: &[i64]) -> Vec<ScheduleRow> {
    let mut rows = vec![ScheduleRow {
        ex_date: date("2010-01-04"),
        amount: dec!(1),
        tag: None,
        doubt: None,
        payment_date: None,
    }];
    for gap in gaps {
        let last = rows[rows.len() - 1];
        rows.push(ScheduleRow { ex_date: last.ex_date + TimeDelta::days(*gap), ..last });
    }
    rows
}

fn read(rows: &[ScheduleRow]) -> Schedule {
    Schedule::read(rows, &Rules::DEFAULT.schedule)
}

/// Rows that are not plain regular payments: ex-date, kind and amount for growth, such as `2020-11-19 combined 0.14`.
fn peculiar(rows: &[ScheduleRow]) -> Vec<String> {
    let schedule = read(rows);
    let readings = schedule.readings.iter().filter(|reading| reading.kind != AmountReading::Regular);
    readings.map(|r| format!("{} {} {}", r.ex_date, r.kind, r.sustained.normalize())).collect()
}

fn totals(rows: &[ScheduleRow], as_of: &str) -> Vec<(i32, Decimal)> {
    let totals = AnnualTotals::new(&read(rows), date(as_of));
    totals.years.iter().map(|total| (total.year, total.amount)).collect()
}

#[test]
fn a_december_extra_is_special() {
    let rows = rows(
        "2016-03-08 0.60\n2016-06-08 0.60\n2016-09-07 0.60\n2016-12-07 0.60\n2016-12-23 3.25
         2017-03-08 0.66\n2017-06-08 0.66\n2017-09-07 0.66\n2017-12-07 0.66\n2017-12-27 3.50
         2018-03-08 0.70\n2018-06-08 0.70\n2018-09-07 0.70\n2018-12-07 0.70\n2018-12-27 1.75",
    );
    assert_eq!(peculiar(&rows), ["2016-12-23 special 0", "2017-12-27 special 0", "2018-12-27 special 0"]);
    assert_eq!(totals(&rows, "2019-01-02")[..3], [(2016, dec!(2.4)), (2017, dec!(2.64)), (2018, dec!(2.8))]);
}

#[test]
fn a_special_in_a_regular_row_is_split_off() {
    let mut amounts = vec![dec!(0.11); 4];
    amounts.extend([dec!(0.14), dec!(5.14), dec!(0.14), dec!(0.14), dec!(0.17), dec!(0.17)]);
    let rows = quarterly("2019-08-29", &amounts);
    assert_eq!(peculiar(&rows), ["2020-11-29 combined 0.14"]);
    let schedule = read(&rows);
    assert_eq!(schedule.readings[5].regular, dec!(0.14));
    // Without a later row, the whole amount of the newest row counts as regular, unless this amount is doubtful.
    assert!(peculiar(&rows[..6]).is_empty());
    let mut doubted = rows[..6].to_vec();
    doubted[5].doubt = Some(AmountDoubt::Unconfirmed);
    assert_eq!(peculiar(&doubted), ["2020-11-29 combined 0.14"]);
    // A special payment a year after another special payment is detected even without a later row.
    let second =
        quarterly("2019-02-15", &[dec!(1), dec!(1), dec!(1), dec!(2), dec!(1), dec!(1), dec!(1), dec!(1.5)]);
    assert_eq!(peculiar(&second), ["2019-11-15 combined 1", "2020-11-15 combined 1"]);
}

#[test]
fn a_raise_that_the_next_payment_confirms_is_a_raise() {
    let rows = quarterly("2019-02-15", &[dec!(1), dec!(1), dec!(1), dec!(1), dec!(3), dec!(3), dec!(3)]);
    assert!(peculiar(&rows).is_empty(), "{:?}", peculiar(&rows));
    let annual = rows_of_a_new_frequency();
    assert!(peculiar(&annual).is_empty(), "{:?}", peculiar(&annual));
    assert_eq!(totals(&annual, "2022-01-03")[7..9], [(2020, dec!(10)), (2021, dec!(11))]);
}

fn rows_of_a_new_frequency() -> Vec<ScheduleRow> {
    let mut rows = every(
        12,
        "2013-03-07",
        &[dec!(0.25), dec!(0.27), dec!(0.29), dec!(0.31), dec!(0.35), dec!(1.05), dec!(1.75), dec!(10)],
    );
    rows.extend(quarterly("2021-03-08", &[dec!(2.75); 4]));
    rows
}

#[test]
fn a_dip_counts_the_smaller_neighbour() {
    let rows = quarterly("2019-02-15", &[dec!(0.0634), dec!(0.0634), dec!(0.0317), dec!(0.0634), dec!(0.07)]);
    assert_eq!(peculiar(&rows), ["2019-08-15 dip 0.0634"]);
    assert_eq!(read(&rows).readings[2].regular, dec!(0.0317));
    // A lasting cut is not a dip.
    let cut = quarterly("2019-02-15", &[dec!(1), dec!(1), dec!(0.5), dec!(0.5), dec!(1)]);
    assert!(peculiar(&cut).is_empty());
}

#[test]
fn payments_that_slip_over_new_year_stay_in_their_year() {
    let text = "2011-01-03 0.10\n2011-04-04 0.10\n2011-07-01 0.10\n2011-10-03 0.10\n2011-12-30 0.11\n2012-04-02 0.11
        2012-06-29 0.11\n2012-10-01 0.11\n2012-12-28 0.12\n2013-04-01 0.12\n2013-07-01 0.12\n2013-09-30 0.12\n2013-12-30 0.13
        2014-03-31 0.13\n2014-06-30 0.13\n2014-09-29 0.13\n2015-01-05 0.14\n2015-03-30 0.14\n2015-06-29 0.14\n2015-10-05 0.14\n2016-01-04 0.15\n2016-04-04 0.15";
    let sums = totals(&rows(text), "2016-01-04");
    let expected =
        [(2011, dec!(0.40)), (2012, dec!(0.44)), (2013, dec!(0.48)), (2014, dec!(0.52)), (2015, dec!(0.56))];
    assert_eq!(sums[..5], expected);
}

#[test]
fn one_missing_slot_is_assumed_and_two_are_unknown() {
    let mut rows = quarterly(
        "2018-02-14",
        &[dec!(0.16), dec!(0.16), dec!(0.16), dec!(0.17), dec!(0.18), dec!(0.18), dec!(0.18), dec!(0.18)],
    );
    rows.remove(3);
    let one = read(&rows);
    assert_eq!(one.missing, [MissingSlot { year: 2018, per_year: 4, assumed: Some(dec!(0.16)) }]);
    assert_eq!(AnnualTotals::new(&one, date("2019-12-31")).amount(2018), dec!(0.64));
    rows.remove(3);
    let two = read(&rows);
    let unknown = |year| MissingSlot { year, per_year: 4, assumed: None };
    assert_eq!(two.missing, [unknown(2018), unknown(2019)]);
    // If the amounts after the gap are lower, the gap is a pause of the payer, and no payment is missing.
    rows[3..].iter_mut().for_each(|row| row.amount = dec!(0.10));
    assert!(read(&rows).missing.is_empty());
}

#[test]
fn interim_and_final_dividends_are_read_at_face_value() {
    let mut rows = every(6, "2015-03-05", &[dec!(0.30), dec!(0.10)].repeat(5));
    assert!(peculiar(&rows).is_empty(), "{:?}", peculiar(&rows));
    // The gaps are made uneven: 86 days, then 279 or 280 days.
    for (index, row) in rows.iter_mut().enumerate() {
        row.ex_date += TimeDelta::days(if index % 2 == 0 { 98 } else { 0 });
    }
    let schedule = read(&rows);
    assert!(peculiar(&rows).is_empty(), "{:?}", peculiar(&rows));
    assert!(schedule.readings.iter().all(|reading| reading.per_year == Some(2)));
    assert!(schedule.readings.iter().all(|reading| reading.year == reading.ex_date.year()));
}

#[test]
fn a_yearly_larger_payment_is_combined_each_year() {
    let rows = quarterly("2015-02-15", &[dec!(0.10), dec!(0.10), dec!(0.10), dec!(0.21)].repeat(3));
    let december = |year: i32| format!("{year}-11-15 combined 0.1");
    assert_eq!(peculiar(&rows), [december(2015), december(2016), december(2017)]);
}

#[test]
fn variable_amounts_are_read_at_face_value() {
    let amounts = [31, 52, 40, 66, 28, 49, 35, 71, 30, 45, 33, 60].map(|cents| Decimal::new(cents, 2));
    assert!(peculiar(&quarterly("2015-02-15", &amounts)).is_empty());
}

#[test]
fn a_bond_fund_pays_twice_in_december() {
    let mut rows = Vec::new();
    for year in 2015..2019 {
        for month in 2..=12 {
            rows.push((NaiveDate::from_ymd_opt(year, month, 1).unwrap(), dec!(0.25)));
        }
        rows.push((NaiveDate::from_ymd_opt(year, 12, 17).unwrap(), dec!(0.25)));
    }
    let rows: Vec<ScheduleRow> = rows
        .into_iter()
        .map(|(ex_date, amount)| ScheduleRow { ex_date, amount, tag: None, doubt: None, payment_date: None })
        .collect();
    assert!(peculiar(&rows).is_empty(), "{:?}", peculiar(&rows));
    let schedule = read(&rows);
    assert!(schedule.missing.is_empty());
    assert!(schedule.readings.iter().all(|reading| reading.year == reading.ex_date.year()));
}

#[test]
fn a_payment_that_is_paid_early_keeps_its_slot() {
    let rows = rows(
        "2011-11-15 0.25\n2012-02-15 0.25\n2012-05-15 0.25\n2012-08-15 0.25\n2012-11-15 0.26\n2012-12-20 0.26
         2013-05-15 0.26\n2013-08-15 0.26\n2013-11-15 0.27\n2014-02-14 0.27\n2014-05-15 0.27\n2014-08-15 0.27",
    );
    let schedule = read(&rows);
    assert!(peculiar(&rows).is_empty() && schedule.missing.is_empty());
    let years: Vec<i32> = schedule.readings.iter().map(|reading| reading.year).collect();
    assert_eq!(years, [2011, 2012, 2012, 2012, 2012, 2013, 2013, 2013, 2013, 2014, 2014, 2014]);
}

#[test]
fn frequent_and_irregular_payers_are_read_at_face_value() {
    let days = |gap: i64, count: i64| -> Vec<ScheduleRow> {
        let row = |n: i64| ScheduleRow {
            ex_date: date("2020-01-02") + TimeDelta::days(gap * n),
            amount: Decimal::from(1 + n % 3),
            tag: None,
            doubt: None,
            payment_date: None,
        };
        (0..count).map(row).collect()
    };
    for rows in [days(7, 60), days(14, 40), days(28, 30)] {
        let schedule = read(&rows);
        assert!(schedule.readings.iter().all(|r| r.per_year.is_none() && r.kind == AmountReading::Regular));
    }
    let irregular = rows(
        "2015-01-05 1\n2015-09-15 4\n2015-11-01 1\n2016-12-29 2\n2017-01-15 3\n2017-03-01 1\n2018-02-01 5",
    );
    assert!(read(&irregular).readings.iter().all(|reading| reading.kind == AmountReading::Regular));
}

proptest::proptest! {
    #[test]
    fn a_history_without_faults_is_read_as_itself(
        per_year in proptest::sample::select(vec![1u32, 2, 4, 12]),
        month in 1u32..=12, day in 3u32..=26, years in 3u32..25, raises in proptest::collection::vec(0i64..300, 25),
    ) {
        let first = NaiveDate::from_ymd_opt(1995, 1 + (month - 1) % (12 / per_year), day).unwrap();
        let mut amount = Decimal::new(5_000, 4);
        let rows: Vec<ScheduleRow> = (0..years * per_year).map(|n| {
            if n % per_year == 0 {
                amount += Decimal::new(raises[(n / per_year) as usize], 4);
            }
            let ex_date = first.checked_add_months(Months::new(12 / per_year * n)).unwrap();
            ScheduleRow { ex_date, amount, tag: None, doubt: None, payment_date: None }
        }).collect();
        let schedule = read(&rows);
        for (reading, row) in schedule.readings.iter().zip(&rows) {
            proptest::prop_assert_eq!(
                (reading.kind, reading.regular, reading.sustained, reading.year),
                (AmountReading::Regular, row.amount, row.amount, row.ex_date.year())
            );
        }
        proptest::prop_assert!(schedule.missing.is_empty() && schedule.changed.is_empty());
    }

    #[test]
    fn scaling_and_shifting_by_whole_years_change_nothing(
        gaps in proptest::collection::vec(5i64..200, 4..40), cents in proptest::collection::vec(1i64..400, 40),
        factor in 2i64..1000, cycles in 1i64..4,
    ) {
        let mut day = date("1990-02-15");
        let rows: Vec<ScheduleRow> = gaps.iter().zip(&cents).map(|(gap, cents)| {
            day += TimeDelta::days(*gap);
            ScheduleRow { ex_date: day, amount: Decimal::new(*cents, 2), tag: None, doubt: None, payment_date: None }
        }).collect();
        let scaled: Vec<ScheduleRow> =
            rows.iter().map(|row| ScheduleRow { amount: row.amount * Decimal::from(factor), ..*row }).collect();
        let kinds = |rows: &[ScheduleRow]| -> Vec<(AmountReading, Option<i32>, i32)> {
            read(rows).readings.iter().map(|r| (r.kind, r.per_year, r.year)).collect()
        };
        proptest::prop_assert_eq!(kinds(&rows), kinds(&scaled));
        // Weekdays and leap years repeat after 28 years.
        let years = i32::try_from(28 * cycles).unwrap();
        let shifted: Vec<ScheduleRow> = rows.iter().map(|row| ScheduleRow {
            ex_date: row.ex_date + TimeDelta::days(365 * i64::from(years) + i64::from(years) / 4), ..*row
        }).collect();
        let moved: Vec<_> = kinds(&rows).into_iter().map(|(kind, n, year)| (kind, n, year + years)).collect();
        proptest::prop_assert_eq!(moved, kinds(&shifted));
    }
}
