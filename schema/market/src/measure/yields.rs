//! Trailing and indicated dividends and their yields (R7, R8, R9).
//!
//! Trailing (TTM): the regular amounts with as_of - 12 calendar months < ex-date <= as_of, on as_of's share basis; pay
//! dates play no part. Indicated (forward): the latest regular amount declared by as_of times n payments a year; once
//! for n = 1; for n = 2 twice, unless it differs by more than 10 % from the one before it: then the two together.
//! Funds and delisted securities have no forward figure, irregular payers neither; suspended and lapsed payers have 0.
//!
//! The headline is the forward yield if a forward figure exists, else the trailing one, on the latest raw close carried
//! through splits. Non-payers, suspended and lapsed payers show 0; no price or another currency than the price's, null.
//! Source: the usual trailing twelve months and indicated annual dividend; the window's bounds and the 10 % are this service's own.

use chrono::{Months, NaiveDate};
use rust_decimal::Decimal;

use super::arithmetic::{mean, percent_of, settle};
use super::series::{Series, month_number};
use crate::row::{DividendState, ForwardBasis, YieldBasis};

/// The regular dividends of one ex-date, per share on the as-of date's basis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub ex_date: NaiveDate,
    pub amount: Decimal,
}

/// The day `months` calendar months before, clamped to the month's end.
pub fn months_before(date: NaiveDate, months: u32) -> NaiveDate {
    date.checked_sub_months(Months::new(months)).unwrap_or(NaiveDate::MIN)
}

/// The rates in the 12 months up to a day: left bound open, right bound closed.
pub fn trailing(rates: &[Rate], as_of: NaiveDate) -> &[Rate] {
    let start = months_before(as_of, 12);
    let from = rates.partition_point(|rate| rate.ex_date <= start);
    let to = rates.partition_point(|rate| rate.ex_date <= as_of);
    rates.get(from..to).unwrap_or_default()
}

/// The sum of some rates.
pub fn sum(rates: &[Rate]) -> Decimal {
    settle(rates.iter().map(|rate| rate.amount).sum())
}

/// Whether a trailing count differs from the payments a year: a shifted ex-date, a skipped or an extra payment.
///
/// More than 12 payments a year may differ by one, since weeks do not divide years.
pub fn is_unusual_count(count: i32, payments_per_year: i32) -> bool {
    (count - payments_per_year).abs() > i32::from(payments_per_year > 12)
}

/// An indicated dividend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forward {
    /// Per share and year; `None` when there is no forward figure.
    pub amount: Option<Decimal>,
    pub basis: ForwardBasis,
}

/// The indicated dividend of the next 12 months. `rates` hold every declared one, in order.
pub fn forward(
    rates: &[Rate],
    payments_per_year: Option<i32>,
    status: DividendState,
    as_of: NaiveDate,
) -> Forward {
    if status != DividendState::Active {
        return Forward { amount: Some(Decimal::ZERO), basis: ForwardBasis::None };
    }
    let (Some(last), Some(payments)) = (rates.last(), payments_per_year) else {
        return Forward { amount: None, basis: ForwardBasis::None };
    };
    let basis = if last.ex_date >= as_of { ForwardBasis::Declared } else { ForwardBasis::LastTimesFrequency };
    let previous = rates.len().checked_sub(2).map(|index| rates[index].amount);
    let amount = match (payments, previous) {
        (2, Some(previous)) if halves_differ(last.amount, previous) => last.amount + previous,
        _ => last.amount.saturating_mul(Decimal::from(payments)),
    };
    Forward { amount: Some(settle(amount)), basis }
}

/// Whether two half-yearly dividends differ by more than 10 % of the earlier one: an interim and a final.
pub(crate) fn halves_differ(last: Decimal, previous: Decimal) -> bool {
    settle((last - previous).abs()) > settle(previous * Decimal::new(1, 1))
}

/// What a headline yield rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeadlineFacts {
    pub status: DividendState,
    pub yield_forward: Option<Decimal>,
    pub yield_ttm: Option<Decimal>,
    /// Whether a forward figure exists, also where its yield cannot be told.
    pub has_forward: bool,
    /// Whether dividends and prices are in different currencies.
    pub mismatch: bool,
}

/// The headline yield in percent and its basis.
pub fn headline(facts: &HeadlineFacts) -> (Option<Decimal>, Option<YieldBasis>) {
    let basis = if facts.has_forward { YieldBasis::Forward } else { YieldBasis::Ttm };
    let value = match facts.status {
        DividendState::NonPayer => Some(Decimal::ZERO),
        _ if facts.mismatch => None,
        DividendState::Suspended | DividendState::Lapsed => Some(Decimal::ZERO),
        DividendState::Active if facts.has_forward => facts.yield_forward,
        DividendState::Active => facts.yield_ttm,
    };
    (value, value.map(|_| basis))
}

/// Mean, highest and lowest of the month-end trailing yields of five years, percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct YieldRange {
    pub average: Decimal,
    pub highest: Decimal,
    pub lowest: Decimal,
}

/// Months of a yield range, and how many it needs at least.
const RANGE_MONTHS: i32 = 60;
const RANGE_MINIMUM: usize = 12;

/// The range of trailing yields at the last 60 month ends whose 12 months the history covers; `None` under 12 of them.
pub(crate) fn yield_range(
    rates: &[Rate],
    series: &Series<'_>,
    last_month: i32,
    as_of: NaiveDate,
) -> Option<YieldRange> {
    let first = rates.first()?.ex_date;
    let mut sums = Vec::with_capacity(rates.len() + 1);
    sums.push(Decimal::ZERO);
    for rate in rates {
        sums.push(sums[sums.len() - 1].checked_add(rate.amount)?);
    }
    let mut yields = Vec::with_capacity(60);
    for (_, index) in series.month_ends(last_month, RANGE_MONTHS) {
        let day = series.date(index);
        let start = months_before(day, 12);
        if month_number(first) > month_number(start) {
            continue;
        }
        let from = rates.partition_point(|rate| rate.ex_date <= start);
        let to = rates.partition_point(|rate| rate.ex_date <= day);
        yields.extend(percent_of(sums[to] - sums[from], series.close_on_basis(index, as_of)));
    }
    if yields.len() < RANGE_MINIMUM {
        return None;
    }
    let (highest, lowest) = (yields.iter().max().copied()?, yields.iter().min().copied()?);
    Some(YieldRange { average: mean(&yields)?, highest, lowest })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    fn rates(rows: &[(&str, Decimal)]) -> Vec<Rate> {
        rows.iter().map(|(day, amount)| Rate { ex_date: date(day), amount: *amount }).collect()
    }

    #[test]
    fn the_window_is_open_left_and_closed_right() {
        let rates = rates(&[
            ("2024-02-28", dec!(1)),
            ("2024-02-29", dec!(2)),
            ("2025-02-28", dec!(4)),
            ("2025-03-01", dec!(8)),
        ]);
        assert_eq!(sum(trailing(&rates, date("2025-02-28"))), dec!(6));
        assert_eq!(sum(trailing(&rates, date("2025-02-27"))), dec!(3));
        assert_eq!(sum(trailing(&rates, date("2024-02-29"))), dec!(3));
        assert!(trailing(&[], date("2024-02-29")).is_empty());
    }

    #[test]
    fn indicated_dividends() {
        let history =
            rates(&[("2023-09-07", dec!(0.10)), ("2024-05-07", dec!(0.32)), ("2024-09-05", dec!(0.11))]);
        let even = rates(&[("2024-03-28", dec!(45)), ("2024-09-27", dec!(49.5))]);
        let check = |rates: &[Rate], payments, expected: Option<Decimal>| {
            let found = forward(rates, payments, DividendState::Active, date("2024-12-31")).amount;
            assert_eq!(found, expected, "{payments:?}");
        };
        check(&history, Some(2), Some(dec!(0.43)));
        check(&even, Some(2), Some(dec!(99)));
        check(&history, Some(1), Some(dec!(0.11)));
        check(&history, Some(4), Some(dec!(0.44)));
        check(&history, Some(6), Some(dec!(0.66)));
        check(&history, Some(52), Some(dec!(5.72)));
        check(&history, None, None);
        let lapsed = forward(&history, Some(4), DividendState::Lapsed, date("2024-12-31"));
        assert_eq!(lapsed, Forward { amount: Some(dec!(0)), basis: ForwardBasis::None });
    }

    #[test]
    fn headlines() {
        let facts = HeadlineFacts {
            status: DividendState::Active,
            yield_forward: Some(dec!(4)),
            yield_ttm: Some(dec!(3)),
            has_forward: true,
            mismatch: false,
        };
        assert_eq!(headline(&facts), (Some(dec!(4)), Some(YieldBasis::Forward)));
        assert_eq!(
            headline(&HeadlineFacts { has_forward: false, ..facts }),
            (Some(dec!(3)), Some(YieldBasis::Ttm))
        );
        assert_eq!(headline(&HeadlineFacts { mismatch: true, ..facts }), (None, None));
        assert_eq!(headline(&HeadlineFacts { status: DividendState::Lapsed, ..facts }).0, Some(dec!(0)));
        assert_eq!(
            headline(&HeadlineFacts { status: DividendState::NonPayer, mismatch: true, ..facts }).0,
            Some(dec!(0))
        );
    }

    #[test]
    fn counts() {
        assert!(is_unusual_count(5, 4) && is_unusual_count(3, 4) && !is_unusual_count(4, 4));
        assert!(!is_unusual_count(53, 52) && is_unusual_count(50, 52));
    }
}
