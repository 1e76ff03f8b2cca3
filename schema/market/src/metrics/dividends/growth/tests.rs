use super::*;
use crate::decimal::round;
use crate::metrics::dividends::schedule::ScheduleRow;
use crate::metrics::dividends::yields::RegularDividend;
use crate::metrics::rules::Rules;

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn totals_of(rates: &[RegularDividend], as_of: &str) -> AnnualTotals {
    let rows: Vec<ScheduleRow> = rates.iter().map(|rate| ScheduleRow::from(*rate)).collect();
    AnnualTotals::new(&Schedule::read(&rows, &Rules::DEFAULT.schedule), date(as_of))
}

fn yearly(first: i32, amounts: &[Decimal]) -> Vec<RegularDividend> {
    let day = |year| NaiveDate::from_ymd_opt(year, 5, 15).unwrap();
    (first..)
        .zip(amounts)
        .filter(|(_, a)| !a.is_zero())
        .map(|(year, amount)| RegularDividend { ex_date: day(year), amount: *amount })
        .collect()
}

#[test]
fn compound_growth() {
    let check = |amounts: &[Decimal], span, expected: Option<Decimal>| {
        let totals = totals_of(&yearly(2014, amounts), "2025-02-01");
        assert_eq!(totals.growth(2024, span).ok().map(|g| round(g, 4)), expected, "{amounts:?} over {span}");
    };
    let ten = [
        dec!(1),
        dec!(1),
        dec!(1),
        dec!(1),
        dec!(1),
        dec!(1),
        dec!(1.1),
        dec!(1.2),
        dec!(1.32),
        dec!(1.44),
        dec!(1.61051),
    ];
    check(&ten, 1, Some(dec!(11.841)));
    check(&ten, 5, Some(dec!(10)));
    check(&ten, 10, Some(dec!(4.8809)));
    check(&ten[1..], 1, None);
    let holed =
        [dec!(1), dec!(1), dec!(1), dec!(1), dec!(1), dec!(1), dec!(1), dec!(0), dec!(1), dec!(1), dec!(2)];
    check(&holed, 1, Some(dec!(100)));
    check(&holed, 5, None);
}

#[test]
fn a_part_year_is_no_base() {
    let rows = [
        ("2023-08-10", dec!(1)),
        ("2023-11-10", dec!(1)),
        ("2024-02-10", dec!(1)),
        ("2024-05-10", dec!(1)),
        ("2024-08-10", dec!(1)),
        ("2024-11-10", dec!(1)),
    ];
    let rates: Vec<RegularDividend> =
        rows.iter().map(|(day, amount)| RegularDividend { ex_date: date(day), amount: *amount }).collect();
    let growth = totals_of(&rates, "2025-01-31").growth(2024, 1);
    assert_eq!(growth, Err(NoGrowthReason::PartialBase(2023)));
}

#[test]
fn slipped_ex_dates_move_back_over_new_year() {
    let days = [
        "2022-01-05",
        "2022-04-05",
        "2022-07-05",
        "2022-10-05",
        "2023-01-05",
        "2023-04-05",
        "2023-07-05",
        "2023-10-05",
        "2023-12-29",
        "2024-04-05",
        "2024-07-05",
        "2024-10-05",
    ];
    let rates: Vec<RegularDividend> =
        days.iter().map(|day| RegularDividend { ex_date: date(day), amount: dec!(1) }).collect();
    let totals = totals_of(&rates, "2025-01-31");
    assert_eq!(totals.shifted, [2024]);
    assert!((2022..=2024).all(|year| totals.amount(year) == dec!(4)));
    let running = totals_of(&rates, "2024-12-31");
    assert_eq!(running.shifted, [2024]);
}

fn years(days: &[(&str, Decimal)]) -> AnnualTotals {
    let rates: Vec<RegularDividend> =
        days.iter().map(|(day, amount)| RegularDividend { ex_date: date(day), amount: *amount }).collect();
    totals_of(&rates, "2025-01-31")
}

#[test]
fn an_ex_date_that_slips_over_new_year_is_counted_in_its_own() {
    let check = |days: [&str; 4], moved: Option<i32>, counts: [i32; 2], amounts: [Decimal; 2]| {
        let amounts_paid = [dec!(1), dec!(2), dec!(4), dec!(8)];
        let rows: Vec<(&str, Decimal)> = days.into_iter().zip(amounts_paid).collect();
        let totals = years(&rows);
        assert_eq!(totals.shifted, moved.into_iter().collect::<Vec<_>>(), "{days:?}");
        assert_eq!([2023, 2024].map(|year| totals.amount(year)), amounts, "{days:?}");
        assert_eq!([2023, 2024].map(|year| totals.total(year).unwrap().payments), counts, "{days:?}");
    };
    let (even, even_sums) = ([2, 2], [dec!(3), dec!(12)]);
    check(["2023-01-05", "2023-07-05", "2024-01-04", "2024-07-05"], None, even, even_sums);
    // In each of these cases, one ex-date is in the calendar year before or after its dividend year.
    check(["2023-01-05", "2023-07-05", "2023-12-29", "2024-07-05"], Some(2024), even, even_sums);
    check(["2023-07-05", "2024-01-02", "2024-07-05", "2024-12-27"], Some(2023), even, even_sums);
    check(["2023-01-05", "2023-07-05", "2023-11-29", "2024-07-05"], Some(2024), even, even_sums);
    check(["2023-07-05", "2024-02-02", "2024-07-05", "2024-12-27"], Some(2023), even, even_sums);
    // Four payments with ex-dates in 2023 all count in 2023.
    check(["2023-01-05", "2023-07-05", "2023-10-05", "2023-12-29"], None, [4, 0], [dec!(15), dec!(0)]);
}

#[test]
fn the_running_year_lends_and_takes_nothing() {
    let totals = years(&[
        ("2024-03-05", dec!(1)),
        ("2024-09-05", dec!(1)),
        ("2024-12-30", dec!(1)),
        ("2025-01-09", dec!(1)),
    ]);
    assert!(totals.shifted.is_empty());
    assert_eq!((totals.amount(2024), totals.amount(2025)), (dec!(2), dec!(1)));
}

#[test]
fn years_without_a_payment_are_zero_and_those_outside_unknown() {
    let totals = years(&[("2021-03-05", dec!(1)), ("2023-03-05", dec!(1)), ("2026-03-05", dec!(9))]);
    assert_eq!((totals.first_year(), totals.years.len()), (Some(2021), 5));
    assert_eq!(
        [2020, 2021, 2022, 2023, 2026].map(|year| totals.amount(year)),
        [dec!(0), dec!(1), dec!(0), dec!(1), dec!(0)]
    );
    assert!(totals.total(2020).is_none() && totals.total(2026).is_none() && totals.total(2022).is_some());
    assert_eq!(years(&[("2026-03-05", dec!(9))]), AnnualTotals::default());
}

#[test]
fn only_a_short_first_year_is_no_base() {
    let totals = years(&[
        ("2022-09-05", dec!(1)),
        ("2023-03-05", dec!(1)),
        ("2023-09-05", dec!(1)),
        ("2024-03-05", dec!(1)),
    ]);
    assert_eq!([2022, 2023, 2024].map(|year| totals.is_base(year)), [false, true, true]);
    assert_eq!([2022, 2023, 2024].map(|year| totals.is_complete(year, 2024)), [false, true, false]);
    let whole = years(&[
        ("2023-03-05", dec!(1)),
        ("2023-09-05", dec!(1)),
        ("2024-03-05", dec!(1)),
        ("2024-09-05", dec!(1.5)),
    ]);
    assert!(whole.is_base(2023));
    assert!(whole.is_complete(2023, 2025) && whole.is_complete(2024, 2025));
    let expected = (Ok(dec!(25)), Err(NoGrowthReason::NoBase(2021)));
    assert_eq!((whole.growth(2024, 1), whole.growth(2024, 3)), expected);
}

#[test]
fn a_first_year_is_complete_if_its_payments_cover_it() {
    let first_year = |days: &[&str], as_of: &str| {
        let rates: Vec<RegularDividend> =
            days.iter().map(|day| RegularDividend { ex_date: date(day), amount: dec!(1) }).collect();
        let totals = totals_of(&rates, as_of);
        totals.is_complete(totals.first_year().unwrap(), date(as_of).year())
    };
    let quarters = ["2023-02-10", "2023-05-10", "2023-08-10", "2023-11-10", "2024-02-10", "2024-05-10"];
    assert!(first_year(&quarters, "2024-06-30"));
    assert!(!first_year(&quarters[1..], "2024-06-30"), "the first quarter is missing");
    assert!(!first_year(&quarters[..3], "2023-12-31"), "the running year");
    // Weekly payments have no slots. Only a later complete year shows that the first year is complete.
    let weekly: Vec<String> =
        (0..104).map(|week| (date("2022-01-07") + chrono::Days::new(7 * week)).to_string()).collect();
    let weekly: Vec<&str> = weekly.iter().map(String::as_str).collect();
    assert!(!first_year(&weekly, "2023-12-31"));
    assert!(first_year(&weekly, "2024-01-31"));
    assert!(!first_year(&weekly[20..], "2024-01-31"), "the first weeks are missing");
}
