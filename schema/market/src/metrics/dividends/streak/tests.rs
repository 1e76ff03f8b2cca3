use super::*;
use crate::metrics::dividends::schedule::{Schedule, ScheduleRow};
use crate::metrics::dividends::yields::RegularDividend;
use crate::metrics::rules::Rules;
use chrono::NaiveDate;

const RULES: StreakRules = Rules::DEFAULT.streak;

fn totals_of(rates: &[RegularDividend]) -> AnnualTotals {
    let rows: Vec<ScheduleRow> = rates.iter().map(|rate| ScheduleRow::from(*rate)).collect();
    AnnualTotals::new(&Schedule::read(&rows, &Rules::DEFAULT.schedule), "2025-02-01".parse().unwrap())
}

/// Annual totals with one amount per year. The last amount is the total of 2024. An amount of 0 is a year without
/// payments.
fn totals(amounts: &[Decimal]) -> AnnualTotals {
    let first = 2025 - i32::try_from(amounts.len()).unwrap();
    let day = |year| NaiveDate::from_ymd_opt(year, 5, 15).unwrap();
    let rates: Vec<RegularDividend> = (first..)
        .zip(amounts)
        .filter(|(_, a)| !a.is_zero())
        .map(|(year, amount)| RegularDividend { ex_date: day(year), amount: *amount })
        .collect();
    totals_of(&rates)
}

#[test]
fn increases() {
    let check = |amounts: &[Decimal], years, lower_bound| {
        let found = increase_streak(
            &totals(amounts),
            &StreakInput { running: 2025, ..StreakInput::default() },
            &RULES,
        );
        assert_eq!((found.years, found.lower_bound), (years, lower_bound), "{amounts:?}");
    };
    check(&[], 0, false);
    check(&[dec!(1)], 0, true);
    check(&[dec!(1), dec!(2), dec!(3)], 2, true);
    check(&[dec!(3), dec!(2), dec!(3)], 1, false);
    check(&[dec!(1), dec!(2), dec!(2)], 0, false);
    check(&[dec!(1), dec!(1.0005)], 0, false);
    check(&[dec!(1), dec!(1.00051)], 1, true);
    check(&[dec!(1), dec!(0), dec!(1), dec!(2)], 1, false);
    let listed = StreakInput { running: 2025, listed: Some(2023), ..StreakInput::default() };
    assert!(!increase_streak(&totals(&[dec!(1), dec!(2)]), &listed, &RULES).lower_bound);
}

#[test]
fn tolerated_flat_years_are_passed_over() {
    let check = |amounts: &[Decimal], tolerated_flat_years, years, started, lower_bound| {
        let rules = StreakRules { tolerated_flat_years, ..RULES };
        let input = StreakInput { running: 2025, ..StreakInput::default() };
        let found = increase_streak(&totals(amounts), &input, &rules);
        let expected = (years, started, lower_bound);
        assert_eq!((found.years, found.started, found.lower_bound), expected, "{amounts:?}");
    };
    let paused = [dec!(1), dec!(2), dec!(2), dec!(3), dec!(3), dec!(3), dec!(4)];
    check(&paused, 0, 1, Some(2024), false);
    check(&paused, 1, 1, Some(2024), false);
    check(&paused, 2, 3, Some(2019), true);
    // The newest year may be a flat year, that is, a year with the same total as the year before. A year with a cut is
    // not flat. The first year after a year without payments is not flat either.
    check(&paused[..6], 2, 2, Some(2020), true);
    check(&[dec!(3), dec!(2), dec!(3)], 5, 1, Some(2024), false);
    check(&[dec!(1), dec!(0), dec!(2), dec!(2), dec!(3)], 5, 1, Some(2024), false);
    check(&[dec!(2), dec!(2), dec!(3)], 1, 1, Some(2024), true);
    let seed = Some(StreakSeed { years: 40, through_year: 2018 });
    let input = StreakInput { running: 2025, seed, ..StreakInput::default() };
    let found = increase_streak(&totals(&paused), &input, &StreakRules { tolerated_flat_years: 2, ..RULES });
    assert_eq!((found.years, found.started, found.seeded), (43, Some(1979), true));
    // A flat year that the seed covers counts as a year of the seed. A flat year after the seed adds nothing.
    let raised = [dec!(1), dec!(1), dec!(2), dec!(3)];
    let rules = StreakRules { tolerated_flat_years: 1, ..RULES };
    for (through_year, expected) in [(2021, (12, Some(2012))), (2022, (12, Some(2013)))] {
        let seed = Some(StreakSeed { years: 10, through_year });
        let input = StreakInput { running: 2025, seed, ..StreakInput::default() };
        let found = increase_streak(&totals(&raised), &input, &rules);
        assert_eq!((found.years, found.started), expected, "through {through_year}");
    }
}

#[test]
fn a_running_year_counts_early_but_never_against() {
    let input = StreakInput { running: 2024, ..StreakInput::default() };
    let found = |amounts: &[Decimal]| increase_streak(&totals(amounts), &input, &RULES).years;
    assert_eq!(found(&[dec!(1), dec!(1.1), dec!(1.12)]), 2);
    assert_eq!(found(&[dec!(1), dec!(1.1), dec!(0.6)]), 1);
}

#[test]
fn a_spin_off_year_does_not_end_a_streak() {
    let check = |amounts: &[Decimal], spin_offs: &[i32], years, started| {
        let input = StreakInput { running: 2025, spin_offs, ..StreakInput::default() };
        let found = increase_streak(&totals(amounts), &input, &RULES);
        assert_eq!((found.years, found.started), (years, started), "{amounts:?} {spin_offs:?}");
    };
    let halved = [dec!(1), dec!(1.1), dec!(1.2), dec!(0.6), dec!(0.7)];
    check(&halved, &[], 1, Some(2024));
    check(&halved, &[2023], 3, Some(2021));
    check(&halved, &[2022], 1, Some(2024));
    check(&halved[..4], &[2024], 2, Some(2022));
    check(&[dec!(1), dec!(1.1), dec!(1.2)], &[2024], 2, Some(2023));
    check(&[dec!(1), dec!(0)], &[2024], 0, None);
    // The streak reaches back over the spin-off year to the first known total.
    let lower_bound = |amounts: &[Decimal], listed| {
        let input = StreakInput { running: 2025, listed, spin_offs: &[2023], ..StreakInput::default() };
        increase_streak(&totals(amounts), &input, &RULES).lower_bound
    };
    let since_2022 = [dec!(1), dec!(0.6), dec!(0.7)];
    assert!(lower_bound(&since_2022, None) && !lower_bound(&since_2022, Some(2022)));
    assert!(lower_bound(&since_2022[1..], None));
    assert!(!lower_bound(&[dec!(2), dec!(1), dec!(0.6), dec!(0.7)], None));
}

#[test]
fn the_year_after_a_spin_off_is_compared_with_the_rate_after_it() {
    // The spin-off is in 2023. The total of 2023 has payments of the old and of the new rate.
    let check = |rate: Option<Decimal>, last: Decimal, expected| {
        let rates_after: Vec<(i32, Decimal)> = rate.map(|rate| (2023, rate)).into_iter().collect();
        let input = StreakInput {
            running: 2025,
            spin_offs: &[2023],
            rates_after: &rates_after,
            ..StreakInput::default()
        };
        let found =
            increase_streak(&totals(&[dec!(1), dec!(1.1), dec!(1.2), dec!(0.9), last]), &input, &RULES);
        assert_eq!(found.years, expected, "{rate:?} {last}");
    };
    check(Some(dec!(0.6)), dec!(0.7), 3);
    check(Some(dec!(0.6)), dec!(0.6), 0);
    check(None, dec!(0.7), 0);
    check(None, dec!(1), 3);
    // A raise late in the year does not make the next year harder.
    check(Some(dec!(1)), dec!(1), 3);
}

#[test]
fn seeds() {
    let rising = totals(&[dec!(1), dec!(2), dec!(3)]);
    let check = |years, through_year, expected: (i32, bool)| {
        let seed = Some(StreakSeed { years, through_year });
        let found =
            increase_streak(&rising, &StreakInput { running: 2025, seed, ..StreakInput::default() }, &RULES);
        assert_eq!((found.years, found.lower_bound), expected, "{years} through {through_year}");
        assert_eq!(found.seeded, !expected.1, "{years} through {through_year}");
    };
    check(43, 2022, (45, false));
    check(43, 2024, (43, false));
    check(43, 2020, (2, true));
    check(43, 2030, (2, true));
    check(1, 2024, (2, true));
}

#[test]
fn a_spin_off_year_after_a_seed_adds_no_year() {
    let check = |amounts: &[Decimal], spin_offs: &[i32], through_year, expected| {
        let seed = Some(StreakSeed { years: 10, through_year });
        let input = StreakInput { running: 2025, seed, spin_offs, ..StreakInput::default() };
        let found = increase_streak(&totals(amounts), &input, &RULES);
        assert_eq!(
            (found.years, found.started),
            expected,
            "{amounts:?} {spin_offs:?} through {through_year}"
        );
    };
    let halved = [dec!(1), dec!(1.1), dec!(0.6), dec!(0.7)];
    check(&halved, &[2023], 2022, (11, Some(2013)));
    check(&halved, &[2023], 2021, (12, Some(2012)));
    check(&halved, &[2023], 2023, (11, Some(2014)));
    check(&halved, &[], 2022, (1, Some(2024)));
    // The year 2022 has a cut. The seed covers it, and the year after it has a spin-off.
    let cut_before = [dec!(2), dec!(1), dec!(1), dec!(1.2)];
    check(&cut_before, &[2023], 2022, (11, Some(2013)));
    check(&cut_before, &[2023], 2021, (1, Some(2024)));
}

#[test]
fn paid_years_and_risk() {
    let paid = totals(&[dec!(1), dec!(0), dec!(1), dec!(1)]);
    assert_eq!((payment_years(&paid, &[], 2025), payment_years(&paid, &[], 2024)), (2, 2));
    assert_eq!((payment_years(&paid, &[2025], 2025), payment_years(&paid, &[2022], 2024)), (3, 4));
    assert_eq!(payment_years(&totals(&[]), &[], 2025), 0);
    assert!(is_at_risk(Some(dec!(0.9)), &paid, 2024, &RULES));
    assert!(!is_at_risk(Some(dec!(0.9996)), &paid, 2024, &RULES));
    assert!(!is_at_risk(None, &paid, 2024, &RULES));
}

#[test]
fn a_short_first_year_is_no_base() {
    let paid = |days: &[&str]| -> AnnualTotals {
        let rates: Vec<RegularDividend> = days
            .iter()
            .zip([dec!(1), dec!(1), dec!(1), dec!(1), dec!(1.1)])
            .map(|(day, amount)| RegularDividend { ex_date: day.parse().unwrap(), amount })
            .collect();
        totals_of(&rates)
    };
    let check = |days: &[&str], listed, years, lower_bound| {
        let input = StreakInput { running: 2025, listed, ..StreakInput::default() };
        let found = increase_streak(&paid(days), &input, &RULES);
        assert_eq!((found.years, found.lower_bound), (years, lower_bound), "{days:?}");
    };
    let begun_in_autumn = ["2023-11-10", "2024-05-10", "2024-11-08"];
    check(&begun_in_autumn, None, 0, true);
    check(&begun_in_autumn, Some(2023), 0, false);
    check(&begun_in_autumn, Some(2022), 0, true);
    // The third year is compared with the second year, which is complete.
    let grown = ["2022-11-10", "2023-05-10", "2023-11-08", "2024-05-10", "2024-11-08"];
    check(&grown, None, 1, true);
    check(&grown, Some(2022), 1, false);
    check(&["2023-05-10", "2023-11-10", "2024-05-10", "2024-11-08"], None, 0, false);
}

#[test]
fn bounds_of_increases_and_cuts() {
    assert_eq!([dec!(1.0005), dec!(1.00051)].map(|new| is_increase(new, dec!(1), &RULES)), [false, true]);
    assert_eq!([dec!(0.9995), dec!(0.99949)].map(|new| is_cut(new, dec!(1), &RULES)), [false, true]);
    assert!(!is_increase(dec!(1), dec!(0), &RULES) && !is_cut(dec!(0), dec!(0), &RULES));
    let paid = totals(&[dec!(1), dec!(0)]);
    assert!(
        !is_at_risk(Some(dec!(0)), &paid, 2024, &RULES) && is_at_risk(Some(dec!(0)), &paid, 2023, &RULES)
    );
}

#[test]
fn a_seed_joins_a_streak_that_reaches_it() {
    // The totals increase in 2023 and 2024. In 2022, the total is equal to the total of 2021.
    let raised = totals(&[dec!(1), dec!(1), dec!(2), dec!(3)]);
    let check = |totals: &AnnualTotals, running, years, through_year, expected: (i32, bool, Option<i32>)| {
        let seed = Some(StreakSeed { years, through_year });
        let found = increase_streak(totals, &StreakInput { running, seed, ..StreakInput::default() }, &RULES);
        assert_eq!((found.years, found.seeded, found.started), expected, "{years} through {through_year}");
    };
    check(&raised, 2025, 10, 2022, (12, true, Some(2013)));
    check(&raised, 2025, 10, 2021, (2, false, Some(2023)));
    check(&raised, 2025, 10, 2023, (11, true, Some(2014)));
    check(&raised, 2025, 1, 2022, (3, true, Some(2022)));
    check(&raised, 2025, 0, 2022, (2, true, Some(2023)));
    // A seed through the newest complete year (2024) is used even if the data contradict it. A seed through an earlier
    // or a future year is not.
    let frozen = totals(&[dec!(1), dec!(1)]);
    check(&frozen, 2025, 10, 2024, (10, true, Some(2015)));
    check(&frozen, 2025, 10, 2023, (0, false, None));
    check(&frozen, 2025, 10, 2025, (0, false, None));
    check(&frozen, 2025, 0, 2024, (0, true, None));
}

#[test]
fn a_streak_over_spin_offs_begins_with_an_increase() {
    let input = StreakInput { running: 2025, spin_offs: &[2023], ..StreakInput::default() };
    let found = increase_streak(&totals(&[dec!(2), dec!(1), dec!(2)]), &input, &RULES);
    assert_eq!((found.years, found.started), (1, Some(2024)));
    // A year with a spin-off and without any payment ends the streak.
    let found = increase_streak(&totals(&[dec!(1), dec!(0), dec!(2)]), &input, &RULES);
    assert_eq!((found.years, found.started), (0, None));
}

#[test]
fn years_with_payments_are_counted_back_from_now() {
    let paid = totals(&[dec!(1), dec!(1)]);
    assert_eq!([2023, 2024, 2025, 2026].map(|running| payment_years(&paid, &[], running)), [1, 2, 2, 0]);
}
