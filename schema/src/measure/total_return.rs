//! Total return (R12): dividends reinvested at the close of their ex-date, splits included, as CRSP defines it.
//!
//! The product over bars of (P_t + D_t) x s_t / P_(t-1), less 1; s_t is to/from of a split on t. Between ex-dates closes
//! cancel, so only the first and last close and those of ex-dates are touched. A distribution whose ex-date has no bar is
//! reinvested at the next one. It is not the ratio of adjusted closes. Null when some cash is in another currency.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::arithmetic::{HUNDRED, quotient};
use super::factors::ExDay;
use super::series::Series;
use super::yields::months_before;

/// Calendar days a start price may be older than the start of the window.
const START_TOLERANCE: i64 = 10;

/// Total return in percent between two bars.
pub(crate) fn total_return(
    series: &Series<'_>,
    ex_days: &[ExDay],
    from: usize,
    to: usize,
) -> Option<Decimal> {
    let (start, end) = (series.date(from), series.date(to));
    let first = ex_days.partition_point(|day| day.ex_date <= start);
    let last = ex_days.partition_point(|day| day.ex_date <= end);
    let mut growth = quotient(series.close(to), series.close(from))?;
    let split = series.splits.between(start, end).inverse();
    growth = split.apply(growth);
    let mut reinvested: Option<(usize, Decimal)> = None;
    for day in ex_days.get(first..last)?.iter().filter(|day| day.foreign || !day.value.is_zero()) {
        if day.foreign {
            return None;
        }
        let bar = series.at_or_after(day.ex_date)?;
        let value = series.splits.carry(day.ex_date, series.date(bar)).apply(day.value);
        reinvested = match reinvested {
            Some((same, sum)) if same == bar => Some((bar, sum.checked_add(value)?)),
            Some((other, sum)) => {
                growth = grown(series, growth, other, sum)?;
                Some((bar, value))
            }
            None => Some((bar, value)),
        };
    }
    if let Some((bar, sum)) = reinvested {
        growth = grown(series, growth, bar, sum)?;
    }
    growth.checked_sub(Decimal::ONE)?.checked_mul(HUNDRED)
}

fn grown(series: &Series<'_>, growth: Decimal, bar: usize, value: Decimal) -> Option<Decimal> {
    let close = series.close(bar);
    growth.checked_mul(quotient(close.checked_add(value)?, close)?)
}

/// The newest bar on or before `months` before the as-of date, if no more than ten days before it.
pub(crate) fn start_bar(series: &Series<'_>, as_of: NaiveDate, months: u32) -> Option<usize> {
    let start = months_before(as_of, months);
    series.at_or_before(start).filter(|index| (start - series.date(*index)).num_days() <= START_TOLERANCE)
}
