//! Range of the trailing yield over the last five years: average, highest and lowest value at the month ends.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::yields::RegularDividend;
use crate::metrics::arithmetic::{mean, percent_of};
use crate::metrics::calendar::months_before;
use crate::metrics::prices::series::{PriceSeries, month_number};

/// Average, highest and lowest trailing yield at the month ends of the last five years.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct YieldRange {
    /// Mean of the yields at the month ends, percent.
    pub average: Decimal,
    /// Highest value at a month end, percent.
    pub highest: Decimal,
    /// Lowest value at a month end, percent.
    pub lowest: Decimal,
    /// Number of month ends with a yield.
    pub month_ends: usize,
}

/// Maximum number of month ends in a yield range: five years.
const RANGE_MONTHS: i32 = 60;
const RANGE_MINIMUM: usize = 12;

/// Range of trailing yields at the last 60 month ends. A month end is used only if the first dividend is at least 12
/// months earlier. `None` if fewer than 12 month ends can be used.
pub(crate) fn yield_range(
    rates: &[RegularDividend],
    series: &PriceSeries<'_>,
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
        yields.extend(percent_of(sums[to] - sums[from], series.close_on_share_basis(index, as_of)));
    }
    if yields.len() < RANGE_MINIMUM {
        return None;
    }
    let (highest, lowest) = (yields.iter().max().copied()?, yields.iter().min().copied()?);
    Some(YieldRange { average: mean(&yields)?, highest, lowest, month_ends: yields.len() })
}

#[cfg(test)]
mod tests;
