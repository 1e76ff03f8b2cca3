//! Changes of the regular dividend rate between ex-dates: latest increase, last cut, number of cuts (R13, R14).
//!
//! A rate is the amount per payment, adjusted for splits. Each rate is compared with the previous rate. An increase or
//! a cut is a difference of more than 0.05 % (the streak tolerance). There is one exception: payers with unequal
//! interim and final dividends. Their interim dividend is compared with the interim dividend of the year before. Their
//! final dividend is compared with the final dividend of the year before.
//!
//! Rates are not compared across a change of frequency. The gap before an ex-date and the gap after it show such a
//! change. The later gap is then less than 0.6 times or more than 1.7 times the earlier gap. This service chose the
//! tolerance and the comparisons.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::frequency::is_restart;
use super::streak::{is_cut, is_increase};
use super::yields::{RegularDividend, has_unequal_halves};
use crate::metrics::arithmetic::change_percent;
use crate::metrics::calendar::months_before;
use crate::metrics::rules::StreakRules;

/// Latest increase, last cut and number of cuts of the regular dividend rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RateChanges {
    /// Ex-date and size (percent) of the newest increase; `None` without an increase.
    pub latest_increase: Option<(NaiveDate, Decimal)>,
    /// Ex-date of the newest cut; `None` without a cut.
    pub last_cut: Option<NaiveDate>,
    /// Number of cuts in the last ten years.
    pub cuts_10y: i32,
}

/// Finds the changes of the regular rate. `rates` are all rates known on the as-of date, declared future rates
/// included.
pub fn rate_changes(
    rates: &[RegularDividend],
    payments_per_year: Option<i32>,
    as_of: NaiveDate,
    rules: &StreakRules,
) -> RateChanges {
    let back = compared_back(rates, payments_per_year);
    let decade = months_before(as_of, 120);
    let mut changes = RateChanges::default();
    for index in back..rates.len() {
        let rate = rates[index];
        match compare(rates, index, back, rules) {
            Some((RateStep::Raised, base)) => {
                changes.latest_increase =
                    change_percent(rate.amount, base.amount).map(|change| (rate.ex_date, change));
            }
            Some((RateStep::Cut, _)) => {
                changes.last_cut = Some(rate.ex_date);
                changes.cuts_10y += i32::from(rate.ex_date > decade);
            }
            None => {}
        }
    }
    changes
}

/// Direction of a change of the regular dividend rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateStep {
    /// The rate is higher.
    Raised,
    /// The rate is lower.
    Cut,
}

/// Compares the newest rate, and returns also the rate that it is compared with. `None` if the rate is unchanged or not
/// comparable, for example after a suspension.
pub fn newest_rate_step(
    rates: &[RegularDividend],
    payments_per_year: Option<i32>,
    rules: &StreakRules,
) -> Option<(RateStep, RegularDividend)> {
    let newest = rates.len().checked_sub(1)?;
    let (step, base) = compare(rates, newest, compared_back(rates, payments_per_year), rules)?;
    let is_resumed = is_restart(rates[newest - 1].ex_date, rates[newest].ex_date);
    (!is_resumed).then_some((step, base))
}

/// Number of payments between a rate and the earlier rate that it is compared with.
fn compared_back(rates: &[RegularDividend], payments_per_year: Option<i32>) -> usize {
    if payments_per_year == Some(2) && has_unequal_halves(rates) { 2 } else { 1 }
}

fn compare(
    rates: &[RegularDividend],
    index: usize,
    back: usize,
    rules: &StreakRules,
) -> Option<(RateStep, RegularDividend)> {
    let (rate, base) = (rates.get(index)?, *rates.get(index.checked_sub(back)?)?);
    if !is_comparable(rates, index) {
        None
    } else if is_increase(rate.amount, base.amount, rules) {
        Some((RateStep::Raised, base))
    } else if is_cut(rate.amount, base.amount, rules) {
        Some((RateStep::Cut, base))
    } else {
        None
    }
}

/// False at a change of frequency: the next gap is below 0.6 or above 1.7 times the previous gap.
fn is_comparable(rates: &[RegularDividend], index: usize) -> bool {
    let gap =
        |from: usize, to: usize| rates.get(to).map(|rate| (rate.ex_date - rates[from].ex_date).num_days());
    match (gap(index - 1, index), gap(index, index + 1)) {
        (Some(before), Some(after)) => 10 * after >= 6 * before && 10 * after <= 17 * before,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::rules::Rules;

    fn check(
        rows: &[(&str, Decimal)],
        payments: i32,
        increase: Option<(&str, Decimal)>,
        cut: Option<&str>,
        cuts: i32,
    ) {
        let date = |text: &str| text.parse::<NaiveDate>().unwrap();
        let rates: Vec<RegularDividend> = rows
            .iter()
            .map(|(day, amount)| RegularDividend { ex_date: date(day), amount: *amount })
            .collect();
        let found = rate_changes(&rates, Some(payments), date("2025-01-31"), &Rules::DEFAULT.streak);
        let expected = RateChanges {
            latest_increase: increase.map(|(day, size)| (date(day), size)),
            last_cut: cut.map(date),
            cuts_10y: cuts,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn raises_and_cuts() {
        check(
            &[
                ("2024-01-05", dec!(1)),
                ("2024-04-05", dec!(0.5)),
                ("2024-07-05", dec!(0.5)),
                ("2024-10-05", dec!(0.75)),
            ],
            4,
            Some(("2024-10-05", dec!(50))),
            Some("2024-04-05"),
            1,
        );
    }

    #[test]
    fn interim_and_final_are_not_raises_and_cuts() {
        let rows = [
            ("2023-05-05", dec!(0.3)),
            ("2023-09-07", dec!(0.1)),
            ("2024-05-07", dec!(0.33)),
            ("2024-09-05", dec!(0.1)),
        ];
        check(&rows, 2, None, None, 0);
        let rows = [
            ("2023-03-16", dec!(0.6)),
            ("2023-09-14", dec!(0.6)),
            ("2024-03-13", dec!(0.31)),
            ("2024-06-13", dec!(0.31)),
            ("2024-09-12", dec!(0.31)),
        ];
        check(&rows, 4, None, None, 0);
    }

    #[test]
    fn a_change_of_rhythm_says_nothing() {
        // The amount increases 100 days after the first payment. The next payment is `after` days later.
        let counts = |after: u64| {
            let first: NaiveDate = "2024-01-02".parse().unwrap();
            let raised = first + chrono::Days::new(100);
            let days =
                [(first, dec!(1)), (raised, dec!(1.1)), (raised + chrono::Days::new(after), dec!(1.1))];
            let rates = days.map(|(ex_date, amount)| RegularDividend { ex_date, amount });
            rate_changes(&rates, Some(4), "2025-01-31".parse().unwrap(), &Rules::DEFAULT.streak)
                .latest_increase
                .is_some()
        };
        assert_eq!([59, 60, 100, 170, 171].map(counts), [false, true, true, true, false]);
    }

    #[test]
    fn cuts_are_counted_for_ten_years() {
        let rows = |day| [("2014-01-31", dec!(1)), (day, dec!(0.5)), ("2016-01-31", dec!(0.5))];
        check(&rows("2015-01-31"), 1, None, Some("2015-01-31"), 0);
        check(&rows("2015-02-01"), 1, None, Some("2015-02-01"), 1);
    }

    #[test]
    fn halves_are_compared_with_the_same_half() {
        let rows = [
            ("2022-03-05", dec!(0.2)),
            ("2022-09-05", dec!(0.1)),
            ("2023-03-06", dec!(0.3)),
            ("2023-09-05", dec!(0.1)),
            ("2024-03-05", dec!(0.33)),
            ("2024-09-05", dec!(0.09)),
        ];
        check(&rows, 2, Some(("2024-03-05", dec!(10))), Some("2024-09-05"), 1);
        // If a payer has equal halves, or pays quarterly, each payment is compared with the payment before.
        let even = [("2023-09-07", dec!(0.1)), ("2024-03-07", dec!(0.105)), ("2024-09-05", dec!(0.1))];
        check(&even, 2, Some(("2024-03-07", dec!(5))), Some("2024-09-05"), 1);
        check(
            &[("2024-03-07", dec!(0.1)), ("2024-06-06", dec!(0.2))],
            4,
            Some(("2024-06-06", dec!(100))),
            None,
            0,
        );
    }
}
