//! Detection of isolated outliers among regular amounts: wrong units (pence as pounds), untyped specials
//! (R28).
//!
//! The input is the sum of one currency per ex-date, quarantined rows included. Otherwise a quarantine would
//! change the comparison of later amounts, and a restored dividend would never be accepted.
//!
//! A sum is suspect if it is at least 10 times the median of the four before it, without a pause over 550
//! days. Adjacent suspects within a factor of 3 form a run. A run is a new level if the next sum is within 3
//! of its last. It is also one if it has two or more sums and no return to the old level follows. A sum with
//! a similar one a year before or after is a yearly extra.
//! Source: the factors and days are this service's own, chosen against reported unit errors and restored
//! dividends: the parameters `outlier.…`.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::metrics::arithmetic::{median, settle, within_factor};
use crate::metrics::dividends::frequency::is_restart;
use crate::metrics::rules;
use crate::metrics::rules::Rules;

/// Sum of the regular amounts of one ex-date in one currency.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExDateSum {
    pub ex_date: NaiveDate,
    /// Amount per share on the as-of date's share basis.
    pub amount: Decimal,
}

/// Sum that no neighbouring sum confirms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IsolatedOutlier {
    /// Position of the sum.
    pub position: usize,
    /// Median of the four sums before its run.
    pub level: Decimal,
}

/// Isolated outliers of sums in order.
pub(crate) fn find_isolated_outliers(sums: &[ExDateSum], rules: &Rules) -> Vec<IsolatedOutlier> {
    let levels: Vec<Option<Decimal>> =
        (0..sums.len()).map(|position| suspected_level(sums, position, rules)).collect();
    let rules = &rules.outlier;
    let mut isolated = Vec::new();
    let mut start = 0;
    while start < sums.len() {
        let mut end = start + 1;
        if let Some(level) = levels[start] {
            while end < sums.len()
                && levels[end].is_some()
                && is_near(sums[end].amount, sums[end - 1].amount, rules)
            {
                end += 1;
            }
            if !is_new_level(sums, start, end, level, rules) {
                let alone = (start..end).filter(|position| !has_yearly_twin(sums, *position, rules));
                isolated.extend(alone.map(|position| IsolatedOutlier { position, level }));
            }
        }
        start = end;
    }
    isolated
}

/// Median that a suspect sum exceeds; `None` if the sum is not suspect.
fn suspected_level(sums: &[ExDateSum], position: usize, rules: &Rules) -> Option<Decimal> {
    let before = usize::try_from(rules.outlier.compared_sums).ok()?;
    let compared = sums.get(position.checked_sub(before)?..=position)?;
    let (suspect, before) = compared.split_last()?;
    let limit = |value: Decimal| settle(value.saturating_mul(rules.outlier.factor));
    // The median is at least the smallest sum, so most sums need no sorting.
    let smallest = before.iter().map(|sum| sum.amount).min()?;
    if settle(suspect.amount) < limit(smallest)
        || compared.windows(2).any(|pair| is_restart(pair[0].ex_date, pair[1].ex_date, rules))
    {
        return None;
    }
    median(before.iter().map(|sum| sum.amount).collect())
        .filter(|level| settle(suspect.amount) >= limit(*level))
}

/// True if the run of suspects from `start` to before `end` is a new payment level.
fn is_new_level(
    sums: &[ExDateSum],
    start: usize,
    end: usize,
    level: Decimal,
    rules: &rules::OutlierRules,
) -> bool {
    let next = sums.get(end).map(|sum| sum.amount);
    let goes_on = next.is_some_and(|next| is_near(next, sums[end - 1].amount, rules));
    let returns = next.is_some_and(|next| is_near(next, level, rules));
    goes_on || (end - start >= 2 && !returns)
}

fn has_yearly_twin(sums: &[ExDateSum], position: usize, rules: &rules::OutlierRules) -> bool {
    let sum = sums[position];
    let yearly = rules.yearly_least_days..=rules.yearly_most_days;
    sums.iter().any(|other| {
        let apart = (other.ex_date - sum.ex_date).num_days().abs();
        yearly.contains(&apart) && is_near(other.amount, sum.amount, rules)
    })
}

fn is_near(a: Decimal, b: Decimal, rules: &rules::OutlierRules) -> bool {
    within_factor(a, b, rules.near_factor)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    /// Payments every `days` days, written `0.05 x4, 5`.
    fn paid(days: i64, text: &str) -> Vec<ExDateSum> {
        let first: NaiveDate = "2000-01-03".parse().unwrap();
        let amounts = text.split(", ").flat_map(|part| {
            let (amount, times) = part.split_once(" x").unwrap_or((part, "1"));
            vec![amount.parse::<Decimal>().unwrap(); times.parse().unwrap()]
        });
        (0..)
            .zip(amounts)
            .map(|(n, amount)| ExDateSum { ex_date: first + TimeDelta::days(days * n), amount })
            .collect()
    }

    fn check(days: i64, text: &str, expected: &[usize]) {
        let found: Vec<usize> = find_isolated_outliers(&paid(days, text), &Rules::DEFAULT)
            .iter()
            .map(|found| found.position)
            .collect();
        assert_eq!(found, expected, "every {days} days: {text}");
    }

    #[test]
    fn ten_times_the_four_before_is_suspect() {
        check(91, "0.05 x4, 5", &[4]);
        check(91, "0.05 x4, 0.50", &[4]);
        check(91, "0.05 x4, 0.4999", &[]);
        check(91, "0.05 x3, 5", &[]);
        // The median of the four, not each of them and not their mean.
        check(91, "0.01, 0.05 x2, 1, 0.5, 0.05 x4", &[4]);
        check(91, "0.01, 0.05 x2, 1, 0.49, 0.05 x4", &[]);
        assert_eq!(find_isolated_outliers(&paid(91, "0.05 x4, 5"), &Rules::DEFAULT)[0].level, dec!(0.05));
    }

    #[test]
    fn a_restored_dividend_comes_back_with_its_second_payment() {
        check(91, "0.01 x8, 0.18", &[8]);
        check(91, "0.01 x8, 0.18 x2", &[]);
        check(91, "0.01 x8, 0.18 x16", &[]);
        check(91, "0.01 x8, 0.18, 0.54", &[]);
        check(91, "0.01 x8, 0.18, 0.5401", &[8, 9]);
        check(91, "0.01 x8, 0.18, 0.06", &[]);
        check(91, "0.01 x8, 0.18, 0.0599", &[8]);
    }

    #[test]
    fn errors_are_held_when_the_old_level_returns() {
        check(91, "0.05 x4, 5, 0.05 x8", &[4]);
        check(91, "0.05 x4, 5 x2", &[]);
        check(91, "0.05 x4, 5 x2, 0.05", &[4, 5]);
        check(91, "0.05 x4, 5 x2, 0.15", &[4, 5]);
        check(91, "0.05 x4, 5 x2, 0.1501", &[]);
        check(91, "0.05 x4, 5 x2, 0.0166", &[]);
        // A third one is the next sum that bears them out.
        check(91, "0.05 x4, 5 x3, 0.05 x4", &[]);
    }

    #[test]
    fn what_resumes_after_years_is_compared_with_nothing() {
        check(550, "0.05 x4, 5, 0.05", &[4]);
        check(551, "0.05 x4, 5, 0.05", &[]);
    }

    #[test]
    fn a_yearly_extra_is_held_until_its_second_year() {
        check(30, "0.02 x11, 0.25", &[11]);
        check(30, "0.02 x11, 0.25, 0.02 x11", &[11]);
        check(30, "0.02 x11, 0.25, 0.02 x11, 0.25", &[]);
        check(30, "0.02 x11, 0.25, 0.02 x11, 0.76", &[11, 23]);
        // 335 to 395 days apart.
        check(67, "0.02 x5, 0.25, 0.02 x4, 0.25, 0.02", &[]);
        check(66, "0.02 x5, 0.25, 0.02 x4, 0.25, 0.02", &[5, 10]);
        check(79, "0.02 x5, 0.25, 0.02 x4, 0.25, 0.02", &[]);
        check(80, "0.02 x5, 0.25, 0.02 x4, 0.25, 0.02", &[5, 10]);
    }

    #[test]
    fn a_later_amount_never_changes_what_is_long_past() {
        let long = paid(91, "0.05 x4, 5, 0.05 x20, 0.06 x20");
        for known in 6..long.len() {
            let found: Vec<usize> = find_isolated_outliers(&long[..known], &Rules::DEFAULT)
                .iter()
                .map(|found| found.position)
                .collect();
            assert_eq!(found, [4], "{known} known");
        }
    }
}
