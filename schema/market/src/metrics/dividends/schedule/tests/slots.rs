//! Tests of the slots of a payment schedule. A slot is the date range of one regular payment, for example a quarter.
//! The tests check which slots are missing, and to which year a payment belongs.

use super::*;

/// Amounts assumed for the missing payments. Every payment is 1.00, and `gaps` are the days between payments.
fn missing(gaps: &[i64]) -> Vec<Option<Decimal>> {
    read(&spaced(gaps)).missing.iter().map(|slot| slot.assumed).collect()
}

#[test]
fn a_slot_is_missing_from_1_6_periods_on() {
    // For a quarterly payer, 1.6 periods are 146.1 days, and 2.5 periods are 228.3 days.
    let after = |days: i64| missing(&[91, 91, 91, 91, days, 91, 91, 91, 91]);
    assert_eq!([after(146), after(147)], [vec![], vec![Some(dec!(1))]]);
    assert_eq!([after(228), after(229)], [vec![Some(dec!(1))], vec![None; 2]]);
}

#[test]
fn half_of_a_deviation_is_added_to_the_next_gap() {
    let after = |first: i64, second: i64| missing(&[91, 91, 91, 91, first, second, 91, 91, 91, 91]).len();
    // A gap of 146 days is 0.6 periods too long. Half of this deviation is added to the next gap. In the next gap, a
    // slot is therefore missing from 1.3 periods (118.7 days) on.
    assert_eq!([after(146, 118), after(146, 119)], [0, 1]);
    // A gap of 60 days is 0.34 periods too short. In the next gap, a slot is therefore missing from 1.77 periods (161.8
    // days) on.
    assert_eq!([after(60, 161), after(60, 162)], [0, 1]);
    // After a gap with one missing slot, the deviation is the difference between the gap and two periods.
    assert_eq!([after(182, 105), after(182, 127)], [1, 1]);
}

#[test]
fn missing_slots_are_reported_up_to_a_pause() {
    let monthly = |months: i64| {
        let mut gaps = vec![30; 24];
        gaps[12] = 30 * months + months / 2;
        missing(&gaps)
    };
    assert_eq!([monthly(2), monthly(3)], [vec![Some(dec!(1))], vec![None; 2]]);
    assert_eq!([monthly(8), monthly(18), monthly(19)], [vec![None; 7], vec![None; 17], vec![]]);
}

#[test]
fn the_newest_ex_dates_decide_between_two_first_slots() {
    let years = |first_january: bool, count: i32| {
        let mut days = Vec::new();
        for year in 0..2 * count {
            let is_january = (year < count) == first_january;
            days.push(if is_january {
                format!("{}-01-02", 2011 + year)
            } else {
                format!("{}-12-30", 2010 + year)
            });
            days.extend(["04-01", "07-01", "10-01"].map(|day| format!("{}-{day}", 2011 + year)));
        }
        let lines: Vec<String> = days.iter().map(|day| format!("{day} 1")).collect();
        let schedule = read(&rows(&lines.join("\n")));
        assert!(schedule.missing.is_empty());
        let years: Vec<i32> = schedule.readings.iter().map(|reading| reading.year).collect();
        (years[0], years[years.len() - 4])
    };
    // Each payment around New Year is in December or in January. If the newest of these payments are in December, all
    // of them count in the old year. If the newest are in January, all of them count in the new year.
    assert_eq!(years(true, 4), (2010, 2017));
    assert_eq!(years(false, 4), (2011, 2018));
}

#[test]
fn payment_dates_decide_the_years_if_half_of_the_rows_have_one() {
    let years = |paid: usize, year_of: i64| {
        // Ex-dates in December, payments in January.
        let mut rows = quarterly("2019-12-20", &[dec!(1); 8]);
        for row in rows.iter_mut().take(paid) {
            row.payment_date = Some(row.ex_date + TimeDelta::days(25));
        }
        let mut rules = Rules::DEFAULT;
        rules.schedule.year_of = year_of;
        let schedule = Schedule::read(&rows, &rules.schedule);
        schedule.readings.iter().map(|reading| reading.year).collect::<Vec<_>>()
    };
    let by_payment = [2020, 2020, 2020, 2020, 2021, 2021, 2021, 2021];
    let by_ex_date = [2019, 2020, 2020, 2020, 2020, 2021, 2021, 2021];
    assert_eq!([years(8, 1), years(4, 1)], [by_payment; 2]);
    assert_eq!([years(3, 1), years(8, 0)], [by_ex_date; 2]);
}

#[test]
fn numbering_starts_anew_where_payments_move_to_another_year() {
    let years = |text: &str| {
        let schedule = read(&rows(text));
        let years: Vec<i32> = schedule.readings.iter().map(|reading| reading.year).collect();
        (years, schedule.changed)
    };
    // An annual payer moves from February to November.
    let moved =
        "2006-02-03 1\n2007-02-02 1\n2008-02-04 1\n2009-02-02 1\n2010-02-08 1\n2010-11-09 1\n2011-11-08 1";
    assert_eq!(years(moved), (vec![2006, 2007, 2008, 2009, 2010, 2010, 2011], vec![2010, 2010]));
    // A single early payment keeps its slot.
    let early = "2006-02-03 1\n2007-02-02 1\n2008-02-04 1\n2008-12-22 1\n2010-02-08 1\n2011-02-09 1";
    assert_eq!(years(early), (vec![2006, 2007, 2008, 2009, 2010, 2011], vec![]));
    // More than three of four half-yearly payments must be outside their calendar year.
    let half = "2012-01-05 1\n2012-07-05 1\n2013-01-05 1\n2013-07-05 1\n2013-12-30 1\n2014-07-04 1\n2014-12-30 1\n2015-07-04 1";
    assert_eq!(years(half), (vec![2011, 2012, 2012, 2013, 2013, 2014, 2014, 2015], vec![]));
}

#[test]
fn years_of_a_changed_frequency_are_reported_on_both_sides() {
    let mut rows = every(6, "2015-03-16", &[dec!(2); 6]);
    rows.extend(quarterly("2018-03-16", &[dec!(1); 8]));
    let schedule = read(&rows);
    assert_eq!(schedule.changed, [2017, 2018]);
    let counts = |year: i32| schedule.readings.iter().filter(|reading| reading.year == year).count();
    assert_eq!([2015, 2016, 2017, 2018, 2019].map(counts), [2, 2, 2, 4, 4]);
    // A change from or to irregular payments is not reported.
    let irregular = spaced(&[91, 91, 91, 91, 91, 91, 13, 40, 21, 300, 50, 17, 140, 44]);
    let schedule = read(&irregular);
    assert!(schedule.readings.iter().any(|reading| reading.per_year.is_none()));
    assert!(schedule.changed.is_empty());
}
