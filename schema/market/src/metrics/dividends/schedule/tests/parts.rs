//! Tests of the amounts at which a row becomes combined (regular and special payment) or a dip (below both neighbours).

use super::*;

/// Rows of a quarterly payer that are not plain regular payments: index, kind and amount for growth.
fn quarters(amounts: &[Decimal]) -> Vec<(usize, AmountReading, Decimal)> {
    kinds(&quarterly("2015-02-16", amounts))
}

fn kinds(rows: &[ScheduleRow]) -> Vec<(usize, AmountReading, Decimal)> {
    let schedule = read(rows);
    let readings = schedule.readings.iter().enumerate();
    let peculiar = readings.filter(|(_, reading)| reading.kind != AmountReading::Regular);
    peculiar.map(|(index, reading)| (index, reading.kind, reading.sustained.normalize())).collect()
}

const COMBINED: AmountReading = AmountReading::Combined;
const DIP: AmountReading = AmountReading::Dip;

#[test]
fn a_payer_is_steady_from_three_steps_on() {
    assert_eq!(quarters(&[dec!(1), dec!(5), dec!(1), dec!(1)]), []);
    assert_eq!(quarters(&[dec!(1), dec!(5), dec!(1), dec!(1), dec!(1)]), [(1, COMBINED, dec!(1))]);
    assert_eq!(quarters(&[dec!(1), dec!(1), dec!(1), dec!(5), dec!(1)]), [(3, COMBINED, dec!(1))]);
    assert_eq!(quarters(&[dec!(1), dec!(1), dec!(0.5), dec!(1)]), []);
}

#[test]
fn a_payer_is_steady_if_a_fifth_of_the_steps_are_downward() {
    let is_read = |before: &[Decimal], after: &[Decimal]| {
        let position = before.len();
        let found = quarters(&[before, &[dec!(5)], after].concat());
        found.iter().any(|(index, kind, _)| *index == position && *kind == COMBINED)
    };
    let flat = [dec!(1); 4];
    // The first payer has one fall among five steps from payment to payment, and is steady. The second payer has two
    // falls.
    assert!(is_read(&[dec!(1.1), dec!(1), dec!(1), dec!(1)], &[dec!(1), dec!(1)]));
    assert!(!is_read(&[dec!(1.1), dec!(1), dec!(1), dec!(1)], &[dec!(1), dec!(0.9)]));
    // The first payer has one fall among seven steps, and is steady. The second payer has two falls.
    assert!(is_read(&[dec!(1.1), dec!(1), dec!(1), dec!(1)], &flat));
    assert!(!is_read(&[dec!(1.2), dec!(1.1), dec!(1), dec!(1)], &flat));
    // The step across the combined row, from the row before it to the row after it, counts too.
    assert!(is_read(&[dec!(1), dec!(1), dec!(1.2), dec!(1)], &flat));
    assert!(!is_read(&[dec!(1), dec!(1), dec!(1.2), dec!(1)], &[dec!(0.9), dec!(1), dec!(1), dec!(1)]));
    // A fall of at most half a percent counts as rounding.
    assert!(is_read(&[dec!(1.2), dec!(1), dec!(1), dec!(1)], &[dec!(0.995), dec!(1), dec!(1), dec!(1)]));
    assert!(!is_read(&[dec!(1.2), dec!(1), dec!(1), dec!(1)], &[dec!(0.994), dec!(1), dec!(1), dec!(1)]));
    // Only four rows before the combined row and four rows after it are compared.
    let far = [dec!(1.4), dec!(1.3), dec!(1), dec!(1), dec!(1), dec!(1)];
    assert!(
        is_read(&far, &flat)
            && is_read(&[dec!(1); 6], &[dec!(1), dec!(1), dec!(1), dec!(1), dec!(0.9), dec!(0.8)])
    );
    let near = [dec!(1), dec!(1), dec!(1.4), dec!(1.3), dec!(1), dec!(1)];
    assert!(!is_read(&near, &flat));
    assert!(!is_read(&flat, &[dec!(1), dec!(1), dec!(0.95), dec!(0.9)]));
}

#[test]
fn a_run_of_combined_rows_is_no_fall_of_its_payer() {
    let run = |extras: &[Decimal]| quarters(&[&[dec!(1); 3], extras, &[dec!(1); 2]].concat());
    let read =
        |indexes: std::ops::Range<usize>| indexes.map(|index| (index, COMBINED, dec!(1))).collect::<Vec<_>>();
    assert_eq!(run(&[dec!(4.8), dec!(7.2)]), read(3..5));
    assert_eq!(run(&[dec!(4.8), dec!(7.2), dec!(4.1)]), read(3..6));
    assert_eq!(run(&[dec!(4.8), dec!(7.2), dec!(4.1), dec!(4)]), []);
}

#[test]
fn a_combined_row_has_the_larger_neighbour_as_its_regular_part() {
    let at = |own: Decimal, next: Decimal| {
        quarters(&[dec!(1), dec!(1), dec!(1), dec!(1), own, next, next, next, next])
    };
    assert_eq!(
        [at(dec!(1.81), dec!(1.4)), at(dec!(1.82), dec!(1.4))],
        [vec![], vec![(4, COMBINED, dec!(1.4))]]
    );
    assert_eq!([at(dec!(1.29), dec!(0.9)), at(dec!(1.3), dec!(0.9))], [vec![], vec![(4, COMBINED, dec!(1))]]);
}

#[test]
fn a_combined_row_of_an_annual_payer_has_a_regular_part_between_its_neighbours() {
    let years = |amounts: &[Decimal]| kinds(&every(12, "2012-03-07", amounts));
    let one = [dec!(1), dec!(1.1), dec!(1.2), dec!(1.3), dec!(5), dec!(1.5), dec!(1.6), dec!(1.7)];
    assert_eq!(years(&one), [(4, COMBINED, dec!(1.4))]);
    // Each row of a run is between the row before it and the row after the run.
    let run = [dec!(1), dec!(1.1), dec!(1.2), dec!(1.3), dec!(5), dec!(4), dec!(1.7), dec!(1.8), dec!(1.9)];
    assert_eq!(years(&run), [(4, COMBINED, dec!(1.5)), (5, COMBINED, dec!(1.6))]);
    // Without a raise, or before a lower amount, the part equals the amount before it.
    let flat = [dec!(1), dec!(1), dec!(1), dec!(1), dec!(5), dec!(1), dec!(1), dec!(1)];
    let cut = [dec!(1), dec!(1), dec!(1), dec!(1), dec!(5), dec!(0.9), dec!(0.9), dec!(0.9)];
    assert_eq!([years(&flat), years(&cut)], [vec![(4, COMBINED, dec!(1))], vec![(4, COMBINED, dec!(1))]]);
}

#[test]
fn a_dip_counts_the_smaller_neighbour_at_either_side() {
    let at = |previous: Decimal, own: Decimal, next: Decimal| {
        quarters(&[previous, previous, previous, previous, own, next, next, next, next])
    };
    assert_eq!(at(dec!(1), dec!(0.97), dec!(2)), [(4, DIP, dec!(1))]);
    assert_eq!(at(dec!(1), dec!(0.98), dec!(2)), []);
    assert_eq!(at(dec!(1), dec!(0.96), dec!(0.98)), [(4, DIP, dec!(0.98))]);
    assert_eq!(at(dec!(1), dec!(0.9604), dec!(0.98)), []);
    // Semi-annual payers have dips, annual payers have none.
    let every = |months: u32| {
        kinds(&super::every(
            months,
            "2010-03-15",
            &[[dec!(1); 4].as_slice(), &[dec!(0.5)], &[dec!(1); 4]].concat(),
        ))
    };
    assert_eq!([every(6), every(12)], [vec![(4, DIP, dec!(1))], vec![]]);
}

#[test]
fn amounts_around_a_change_of_the_frequency_are_compared_as_annual_rates() {
    let mut rows = every(6, "2012-03-15", &[dec!(2); 6]);
    rows.extend(quarterly(
        "2015-03-15",
        &[dec!(1), dec!(1), dec!(5), dec!(1), dec!(1), dec!(1), dec!(1), dec!(1)],
    ));
    assert_eq!(kinds(&rows), [(8, COMBINED, dec!(1))]);
    // Row 5, the last semi-annual row, now pays 3 a year. The rows before and after it pay 4 a year.
    rows[5].amount = dec!(1.5);
    rows[8].amount = dec!(1);
    assert_eq!(kinds(&rows), [(5, DIP, dec!(2))]);
}

#[test]
fn a_newest_row_is_combined_a_year_after_a_special() {
    let newest = |days: i64, own: Decimal| {
        let amounts = [[dec!(1); 4].as_slice(), &[dec!(3)], &[dec!(1); 3]].concat();
        let mut rows = quarterly("2015-02-16", &amounts);
        rows.push(ScheduleRow { ex_date: rows[4].ex_date + TimeDelta::days(days), amount: own, ..rows[0] });
        let found = kinds(&rows);
        assert_eq!(found[0], (4, COMBINED, dec!(1)));
        found.len() == 2
    };
    assert_eq!([334, 335, 395, 396].map(|days| newest(days, dec!(2))), [false, true, true, false]);
    assert_eq!([dec!(1.29), dec!(1.3)].map(|own| newest(365, own)), [false, true]);
}

#[test]
fn an_unconfirmed_row_has_the_rate_before_it_as_its_regular_part() {
    let doubted = |next: &[Decimal]| {
        let mut rows =
            quarterly("2015-02-16", &[&[dec!(1), dec!(1), dec!(1), dec!(1), dec!(40)], next].concat());
        rows[4].doubt = Some(AmountDoubt::Unconfirmed);
        kinds(&rows)
    };
    assert_eq!(doubted(&[]), [(4, COMBINED, dec!(1))]);
    // The regular part is the next amount if this is above the previous amount (1) and below the doubtful amount (40).
    // Otherwise, the regular part is the previous amount.
    assert_eq!(doubted(&[dec!(1.2), dec!(1.2)]), [(4, COMBINED, dec!(1.2))]);
    assert_eq!(doubted(&[dec!(0.8), dec!(0.8)]), [(4, COMBINED, dec!(1))]);
    assert_eq!(doubted(&[dec!(40), dec!(40)])[0], (4, COMBINED, dec!(1)));
    // A row with a doubtful amount is combined even if the payer is not steady.
    let mut variable = quarterly("2015-02-16", &[dec!(3), dec!(2), dec!(4), dec!(1), dec!(40)]);
    variable[4].doubt = Some(AmountDoubt::Unconfirmed);
    assert_eq!(kinds(&variable), [(4, COMBINED, dec!(1))]);
    // The regular part is at most the amount of the row.
    variable[4].amount = dec!(0.6);
    assert_eq!(kinds(&variable), [(4, COMBINED, dec!(0.6))]);
}

#[test]
fn no_amount_is_compared_across_a_pause() {
    let after = |days: i64| {
        let gaps = [vec![91; 7], vec![days], vec![91; 7]].concat();
        let mut rows = spaced(&gaps);
        rows[8].amount = dec!(0.5);
        kinds(&rows)
    };
    assert_eq!([after(550), after(551)], [vec![(8, DIP, dec!(1))], vec![]]);
}
