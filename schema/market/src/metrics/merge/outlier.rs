//! Outliers among regular amounts (R28). They are amounts in a wrong unit (pence as pounds), or amounts that no later
//! payment confirms.
//!
//! The input is one annual rate per ex-date in one currency. Rates of quarantined rows are included. Without them, a
//! restored dividend would never be accepted. Each of its payments would be compared with the low rates before the
//! restoration.
//!
//! - Large rate: a rate of at least 10 times the median of the four rates before it. A rate is not checked if these
//!   five rates contain a gap of more than 550 days.
//! - Run: one or more consecutive large rates. Each differs from the previous one by at most a factor of 3.
//! - Lasting run: the new rate of the payer. A run is lasting in each of these cases:
//!   - The next rate is within a factor of 3 of the last rate of the run.
//!   - The run has two or more rates, and no rate follows.
//!   - The run has two or more rates. The next rate differs from the median before the run by more than a factor of 3.
//! - Outlier: every rate in a run that is not lasting.
//!
//! A unit factor is a factor of about 10, 100 or 1,000. The outliers of a run are in a wrong unit if all these
//! conditions are met:
//! - Each rate of the run differs by a unit factor from the median before the run.
//! - If a rate follows the run, it differs by a unit factor from each rate of the run.
//! - No rate outside the run is about equal to a rate of the run.
//!
//! Otherwise, the outliers of the run are unconfirmed amounts. A single rate that is not large can also be in a wrong
//! unit. It is an outlier in a wrong unit if the same conditions are met. For example, the rate is too small by a unit
//! factor.
//!
//! Source: this service chose the factors and days by comparison with reported unit errors and restored dividends.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::metrics::arithmetic::{exact, median, percent_to_fraction, remove_division_error, within_factor};
use crate::metrics::dividends::frequency::is_restart;
use crate::metrics::rules::OutlierRules;

/// Number of earlier annual rates with which a new annual rate is compared.
const COMPARED_RATES: usize = 4;
/// Two annual rates confirm each other if they differ by at most this factor.
const NEAR_FACTOR: Decimal = exact("3");

/// Annual rate of one ex-date in one currency: the regular amounts, times the number of payments a year.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExDateRate {
    pub ex_date: NaiveDate,
    /// Rate per share and year, on the share basis of the as-of date.
    pub rate: Decimal,
}

/// Annual rate that contradicts the rates before and after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outlier {
    /// Index of the outlier in the list of rates.
    pub position: usize,
    /// Median of the rates before the outlier. For a run of large rates, the median before the run.
    pub level: Decimal,
    /// True if the amount is probably in a wrong unit (a factor of about 10, 100 or 1,000). False if it is an
    /// unconfirmed large amount.
    pub is_unit_error: bool,
}

/// Finds the outliers among rates that are sorted by ex-date.
pub(crate) fn find_outliers(rates: &[ExDateRate], rules: &OutlierRules) -> Vec<Outlier> {
    let mut is_usual = false;
    let mut level = |position: usize| {
        // A rate is clearly usual if it equals a clearly usual previous rate.
        let is_repeated = is_usual && rates[position].rate == rates[position - 1].rate;
        is_usual = is_repeated || is_clearly_usual(rates, position, rules);
        if is_usual { None } else { level_before(rates, position) }
    };
    let levels: Vec<Option<Decimal>> = (0..rates.len()).map(&mut level).collect();
    let is_large = |position: usize| {
        levels[position].is_some_and(|level| {
            remove_division_error(rates[position].rate)
                >= remove_division_error(level.saturating_mul(rules.factor))
        })
    };
    let mut outliers = Vec::new();
    let mut start = 0;
    while start < rates.len() {
        let mut end = start + 1;
        let Some(level) = levels[start] else {
            start = end;
            continue;
        };
        if is_large(start) {
            while end < rates.len() && is_large(end) && is_near(rates[end].rate, rates[end - 1].rate) {
                end += 1;
            }
        }
        let run = start..end;
        let is_unit_error = run.clone().all(|position| is_unit_error(rates, position, &run, level, rules));
        let contradicts = is_large(start) && !is_new_level(rates, start, end, level);
        if contradicts || (!is_large(start) && is_unit_error) {
            outliers.extend(run.map(|position| Outlier { position, level, is_unit_error }));
        }
        start = end;
    }
    outliers
}

/// Earlier rates for the comparison, followed by the rate at `position`. `None` if there are too few earlier rates.
fn compared(rates: &[ExDateRate], position: usize) -> Option<&[ExDateRate]> {
    rates.get(position.checked_sub(COMPARED_RATES)?..=position)
}

/// Fast check: true if the rate at `position` is within a factor of five of all compared rates. It is then not an
/// outlier.
fn is_clearly_usual(rates: &[ExDateRate], position: usize, rules: &OutlierRules) -> bool {
    let five = Decimal::from(5);
    let Some((rate, before)) = compared(rates, position).and_then(<[_]>::split_last) else {
        return false;
    };
    let rates = || before.iter().map(|rate| rate.rate);
    let (Some(smallest), Some(largest)) = (rates().min(), rates().max()) else { return false };
    rules.factor >= five
        && rate.rate < smallest.saturating_mul(five)
        && rate.rate.saturating_mul(five) > largest
}

/// Median of the compared rates before `position`. `None` if they are too few, or if payments paused between them.
fn level_before(rates: &[ExDateRate], position: usize) -> Option<Decimal> {
    let compared = compared(rates, position)?;
    if compared.windows(2).any(|pair| is_restart(pair[0].ex_date, pair[1].ex_date)) {
        return None;
    }
    let (_, before) = compared.split_last()?;
    median(before.iter().map(|rate| rate.rate).collect())
}

/// True if the rate at `position` is probably in a wrong unit. `run` contains `position`, and `level` is the median
/// before `run`.
fn is_unit_error(
    rates: &[ExDateRate],
    position: usize,
    run: &std::ops::Range<usize>,
    level: Decimal,
    rules: &OutlierRules,
) -> bool {
    let rate = rates[position].rate;
    let is_unit = |other: Decimal| differs_by_unit(rate, other, rules);
    let is_same = |other: Decimal| is_about(rate, other, rules);
    is_unit(level)
        && rates.get(run.end).is_none_or(|next| is_unit(next.rate))
        // Another payment of about the same amount confirms the amount.
        && !(0..rates.len()).any(|other| !run.contains(&other) && is_same(rates[other].rate))
}

fn differs_by_unit(a: Decimal, b: Decimal, rules: &OutlierRules) -> bool {
    let (large, small) = (a.max(b), a.min(b));
    [10, 100, 1000].iter().any(|unit| is_about(large, small.saturating_mul(Decimal::from(*unit)), rules))
}

/// True if `a` differs from `b` by at most `outlier.unit_tolerance` percent of `b`.
fn is_about(a: Decimal, b: Decimal, rules: &OutlierRules) -> bool {
    remove_division_error((a - b).abs())
        <= remove_division_error(b.saturating_mul(percent_to_fraction(rules.unit_tolerance)))
}

/// True if the large rates at the indexes `start..end` are a lasting run, not outliers. `level` is the median before
/// them.
fn is_new_level(rates: &[ExDateRate], start: usize, end: usize, level: Decimal) -> bool {
    let next = rates.get(end).map(|rate| rate.rate);
    let goes_on = next.is_some_and(|next| is_near(next, rates[end - 1].rate));
    let returns = next.is_some_and(|next| is_near(next, level));
    // Two or more large rates confirm each other, unless the old level returns.
    goes_on || (end - start >= 2 && !returns)
}

fn is_near(a: Decimal, b: Decimal) -> bool {
    within_factor(a, b, NEAR_FACTOR)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::metrics::rules::Rules;

    /// Annual rates of payments that are `days` days apart. `text` is for example `0.05 x4, 5`: four rates of 0.05,
    /// then one rate of 5.
    fn paid(days: i64, text: &str) -> Vec<ExDateRate> {
        let first: NaiveDate = "2000-01-03".parse().unwrap();
        let amounts = text.split(", ").flat_map(|part| {
            let (amount, times) = part.split_once(" x").unwrap_or((part, "1"));
            vec![amount.parse::<Decimal>().unwrap(); times.parse().unwrap()]
        });
        (0..)
            .zip(amounts)
            .map(|(n, rate)| ExDateRate { ex_date: first + TimeDelta::days(days * n), rate })
            .collect()
    }

    fn check(days: i64, text: &str, units: &[usize], unconfirmed: &[usize]) {
        let found = find_outliers(&paid(days, text), &Rules::DEFAULT.outlier);
        let of = |is_unit_error: bool| -> Vec<usize> {
            let kind = found.iter().filter(|outlier| outlier.is_unit_error == is_unit_error);
            kind.map(|outlier| outlier.position).collect()
        };
        assert_eq!(
            (of(true).as_slice(), of(false).as_slice()),
            (units, unconfirmed),
            "every {days} days: {text}"
        );
    }

    #[test]
    fn a_rate_of_a_power_of_ten_is_a_wrong_unit() {
        check(91, "0.05 x4, 5", &[4], &[]);
        check(91, "0.05 x4, 0.50", &[4], &[]);
        check(91, "0.05 x4, 50", &[4], &[]);
        check(91, "0.05 x4, 500", &[], &[4]);
        check(91, "0.05 x3, 5", &[], &[]);
        // The tolerance is 15 %. A rate after the outlier must confirm the unit error.
        check(91, "0.05 x4, 5.75, 0.05", &[4], &[]);
        check(91, "0.05 x4, 5.76, 0.05", &[], &[4]);
        check(91, "0.05 x4, 5, 0.5 x4", &[4], &[]);
        check(91, "0.05 x4, 5, 1 x4", &[], &[4]);
        // A rate can also be too small. A lasting cut is not an outlier.
        check(91, "5 x4, 0.05, 5", &[4], &[]);
        check(91, "5 x4, 0.05", &[4], &[]);
        check(91, "5 x4, 0.05 x2", &[], &[]);
        check(91, "5 x4, 0.5", &[4], &[]);
        check(91, "5 x4, 0.9", &[], &[]);
        assert_eq!(find_outliers(&paid(91, "0.05 x4, 5"), &Rules::DEFAULT.outlier)[0].level, dec!(0.05));
    }

    #[test]
    fn another_row_at_the_rate_bears_it_out() {
        check(91, "5, 0.05 x5, 5, 0.05", &[], &[6]);
        check(91, "7, 0.05 x5, 5, 0.05", &[6], &[]);
        check(91, "0.05 x4, 5, 0.05 x4, 5, 0.05", &[], &[4, 9]);
    }

    #[test]
    fn ten_times_the_four_before_needs_a_confirmation() {
        check(91, "0.05 x4, 0.80", &[], &[4]);
        check(91, "0.05 x4, 0.42", &[], &[]);
        // The median of the four rates is compared, not each rate and not the mean.
        check(91, "0.01, 0.05 x2, 1, 0.80, 0.05 x4", &[], &[4]);
        check(91, "0.01, 0.05 x2, 1, 0.42, 0.05 x4", &[], &[]);
    }

    #[test]
    fn a_restored_dividend_is_confirmed_by_its_second_payment() {
        check(91, "0.01 x8, 0.18", &[], &[8]);
        check(91, "0.01 x8, 0.18 x2", &[], &[]);
        check(91, "0.01 x8, 0.18 x16", &[], &[]);
        check(91, "0.01 x8, 0.18, 0.54", &[], &[]);
        check(91, "0.01 x8, 0.18, 0.5401", &[], &[8, 9]);
        check(91, "0.01 x8, 0.18, 0.06", &[], &[]);
        check(91, "0.01 x8, 0.18, 0.0599", &[], &[8]);
    }

    #[test]
    fn a_run_of_wrong_units_is_found_when_the_old_level_returns() {
        check(91, "0.05 x4, 5, 0.05 x8", &[4], &[]);
        check(91, "0.05 x4, 5 x2", &[], &[]);
        check(91, "0.05 x4, 5 x2, 0.05", &[4, 5], &[]);
        check(91, "0.05 x4, 5 x2, 0.1501", &[], &[]);
        // A third large rate confirms the run.
        check(91, "0.05 x4, 5 x3, 0.05 x4", &[], &[]);
    }

    #[test]
    fn a_dividend_resumed_after_years_is_compared_with_nothing() {
        check(550, "0.05 x4, 5, 0.05", &[4], &[]);
        check(551, "0.05 x4, 5, 0.05", &[], &[]);
    }

    #[test]
    fn a_later_amount_never_changes_an_old_reading() {
        let long = paid(91, "0.05 x4, 5, 0.05 x20, 0.06 x20");
        for known in 6..long.len() {
            let found = find_outliers(&long[..known], &Rules::DEFAULT.outlier);
            let positions: Vec<usize> = found.iter().map(|found| found.position).collect();
            assert_eq!(positions, [4], "{known} known");
        }
    }
}
