//! Ranges and averages of recent prices, on the as-of date's share basis (R22).
//!
//! 52 weeks: the highest and lowest intraday price of the sessions in (as_of - 12 months, as_of], split- but not
//! dividend-adjusted; where a bar has no high or low its close stands in. Averages: the newest 50 or 200 closes, null with
//! fewer; volume over the newest 30 sessions that have one.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::adjust::Ratio;
use super::arithmetic::{bounded, quotient, whole};
use super::series::Series;
use super::yields::months_before;
use crate::bars::MISSING;

/// A price and its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extreme {
    pub price: Decimal,
    pub date: NaiveDate,
}

/// The highest and lowest intraday prices of the last 12 months.
pub(crate) fn year_range(series: &Series<'_>, as_of: NaiveDate) -> Option<(Extreme, Extreme)> {
    let from = series.at_or_before(months_before(as_of, 12)).map_or(0, |index| index + 1);
    let mut range: Option<(Extreme, Extreme)> = None;
    for (start, end, ratio) in same_basis(series, from, as_of) {
        let high_of = |index: usize| present(series.bars.high[index], series.bars.close[index]);
        let low_of = |index: usize| present(series.bars.low[index], series.bars.close[index]);
        // The newest of equal extremes, so that a range touched again is dated by its last touch.
        let (Some(highest), Some(lowest)) =
            ((start..end).max_by_key(|i| high_of(*i)), (start..end).rev().min_by_key(|i| low_of(*i)))
        else {
            continue;
        };
        let extreme = |index: usize, value: i64| Extreme {
            price: ratio.apply(Decimal::new(value, series.bars.scale)),
            date: series.date(index),
        };
        let (high, low) = (extreme(highest, high_of(highest)), extreme(lowest, low_of(lowest)));
        range = Some(match range {
            None => (high, low),
            Some((best, worst)) => (
                if high.price >= best.price { high } else { best },
                if low.price <= worst.price { low } else { worst },
            ),
        });
    }
    range
}

/// A bar's high or low; vendors write 0 for unknown.
fn present(value: i64, close: i64) -> i64 {
    if value == MISSING || value <= 0 { close } else { value }
}

/// The mean close of the newest `count` bars; `None` with fewer.
pub(crate) fn average_close(series: &Series<'_>, count: usize, as_of: NaiveDate) -> Option<Decimal> {
    let from = series.bars.len().checked_sub(count)?;
    let mut sum = Decimal::ZERO;
    for (start, end, ratio) in same_basis(series, from, as_of) {
        let closes: i128 = series.bars.close[start..end].iter().map(|close| i128::from(*close)).sum();
        let closes = Decimal::try_from_i128_with_scale(closes, series.bars.scale).ok()?;
        sum = bounded(sum.checked_add(ratio.apply(closes)));
    }
    quotient(sum, Decimal::from(count))
}

/// The mean volume in shares of the newest `count` bars, over those that have one.
pub(crate) fn average_volume(series: &Series<'_>, count: usize, as_of: NaiveDate) -> Option<i64> {
    let from = series.bars.len().saturating_sub(count);
    let (mut sum, mut days) = (Decimal::ZERO, 0usize);
    for (start, end, ratio) in same_basis(series, from, as_of) {
        let volumes = series.bars.volume[start..end].iter().filter(|volume| **volume != MISSING);
        days += volumes.clone().count();
        let shares: i128 = volumes.map(|volume| i128::from(*volume)).sum();
        sum = bounded(
            sum.checked_add(ratio.inverse().apply(Decimal::try_from_i128_with_scale(shares, 0).ok()?)),
        );
    }
    quotient(sum, Decimal::from(days)).and_then(whole)
}

/// Runs of bars from `from` on between two splits, as (start, end, ratio to the as-of basis).
fn same_basis(series: &Series<'_>, from: usize, as_of: NaiveDate) -> Vec<(usize, usize, Ratio)> {
    let mut runs = Vec::with_capacity(1);
    let mut start = from;
    while start < series.bars.len() {
        let day = series.date(start);
        let next = series
            .splits
            .events()
            .iter()
            .map(|split| split.ex_date)
            .find(|ex_date| *ex_date > day && *ex_date <= as_of);
        let end = next.and_then(|ex_date| series.at_or_after(ex_date)).unwrap_or(series.bars.len());
        runs.push((start, end, series.splits.carry(day, as_of)));
        start = end;
    }
    runs
}
