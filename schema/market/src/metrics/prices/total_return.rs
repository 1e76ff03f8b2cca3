//! Total return by the definition of CRSP (R12). Dividends are reinvested at the close of their ex-date; splits are
//! included.
//!
//! The return is the product over all bars of (P_t + D_t) x s_t / P_(t-1), minus 1. P_t is the close of day t, and D_t
//! is the sum of its distributions. s_t is the number of new shares per old share in a split on day t, or 1 without a
//! split. Between ex-dates, the closes cancel: each is once a numerator and once a denominator. Therefore only the
//! first close, the last close and the closes of ex-dates are needed.
//!
//! A distribution without a bar on its ex-date is reinvested at the next bar. The result is null if a distribution is
//! in another currency than the prices. The ratio of two adjusted closes is not exactly this return, because adjustment
//! factors use the close before the ex-date.
//!
//! Source: CRSP's definition of holding-period returns.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::adjustment::{AdjustmentFactor, Ratio};
use super::series::PriceSeries;
use crate::day::{date_of, day_number, position_on_or_after};
use crate::metrics::arithmetic::{HUNDRED, quotient};
use crate::metrics::calendar::months_before;

/// Maximum number of calendar days from the start price of a return to the first day of its period.
const START_TOLERANCE: i64 = 10;

/// Raw closes of sorted sessions, with the adjustment factors between them.
#[derive(Clone, Copy)]
pub struct CloseSeries<'a> {
    /// Day number of each session, ascending.
    pub days: &'a [i32],
    /// Function that returns the raw close of the session at an index. Closes are positive.
    pub close: &'a dyn Fn(usize) -> Decimal,
    /// Adjustment factors, sorted by ex-date.
    pub factors: &'a [AdjustmentFactor],
}

/// Total return between the sessions at two indexes, percent. `None` if a distribution is in another currency or the
/// result overflows.
pub fn total_return(closes: &CloseSeries<'_>, from: usize, to: usize) -> Option<Decimal> {
    let (start, end) = (date_of(*closes.days.get(from)?), date_of(*closes.days.get(to)?));
    let first = closes.factors.partition_point(|day| day.ex_date <= start);
    let last = closes.factors.partition_point(|day| day.ex_date <= end);
    let passed = closes.factors.get(first..last)?;
    // Between ex-dates, the closes cancel, so only the first, the last and those of ex-dates are needed.
    let mut growth = quotient((closes.close)(to), (closes.close)(from))?;
    growth = price_ratio_of(passed).inverse().apply(growth);
    for same_bar in passed.chunk_by(|a, b| closes.session(a) == closes.session(b)) {
        growth = growth.checked_mul(reinvested(closes, same_bar)?)?;
    }
    growth.checked_sub(Decimal::ONE)?.checked_mul(HUNDRED)
}

impl CloseSeries<'_> {
    /// Index of the session at which a distribution is reinvested: the first session on or after its ex-date.
    pub(super) fn session(&self, day: &AdjustmentFactor) -> usize {
        position_on_or_after(self.days, day_number(day.ex_date))
    }
}

/// Product of the ratios of the splits and price-only actions of `days`. The ratio of a spin-off has the same effect as
/// reinvesting the value of the spin-off.
fn price_ratio_of(days: &[AdjustmentFactor]) -> Ratio {
    days.iter().fold(Ratio::ONE, |ratio, day| ratio.then(day.price_ratio()))
}

/// Growth by the distributions of `days`, reinvested at one session: (P + D) / P. P is the close of the session. D is
/// the sum of the distributions, adjusted for the splits up to the session.
fn reinvested(closes: &CloseSeries<'_>, days: &[AdjustmentFactor]) -> Option<Decimal> {
    let close = (closes.close)(closes.session(days.first()?));
    let mut value = Decimal::ZERO;
    for (index, day) in days.iter().enumerate() {
        let later = price_ratio_of(days.get(index + 1..).unwrap_or_default());
        value = value.checked_add(later.apply(day.value?))?;
    }
    if value.is_zero() { Some(Decimal::ONE) } else { quotient(close.checked_add(value)?, close) }
}

/// Start bar of a period of `months` months up to `as_of`: the newest bar on or before the first day. `None` if the
/// newest bar is more than ten days older than that day.
pub(crate) fn start_bar(series: &PriceSeries<'_>, as_of: NaiveDate, months: u32) -> Option<usize> {
    let start = months_before(as_of, months);
    series.at_or_before(start).filter(|index| (start - series.date(*index)).num_days() <= START_TOLERANCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decimal::round;

    fn check(
        closes: &[(&str, i64)],
        events: &[(&str, i64, i64, Option<Decimal>)],
        expected: Option<Decimal>,
    ) {
        let day = |text: &str| text.parse::<NaiveDate>().unwrap();
        let days: Vec<i32> = closes.iter().map(|(date, _)| day_number(day(date))).collect();
        let factors: Vec<AdjustmentFactor> = events
            .iter()
            .map(|(date, from, to, value)| AdjustmentFactor {
                ex_date: day(date),
                split: Ratio { from: (*from).into(), to: (*to).into() },
                dividend_factor: Decimal::ONE,
                dividend: Decimal::ZERO,
                value: *value,
                price_only: Ratio::ONE,
            })
            .collect();
        let close = |index: usize| Decimal::from(closes[index].1);
        let found =
            total_return(&CloseSeries { days: &days, close: &close, factors: &factors }, 0, days.len() - 1);
        assert_eq!(found.map(|found| round(found, 4)), expected, "{events:?}");
    }

    #[test]
    fn dividends_buy_shares_at_the_close_of_their_ex_date() {
        let closes = [("2024-01-02", 100), ("2024-01-03", 99), ("2024-01-05", 101)];
        let paid = Some(dec!(2));
        check(&closes, &[], Some(dec!(1)));
        check(&closes, &[("2024-01-03", 1, 1, paid)], Some(dec!(3.0404)));
        check(&closes, &[("2024-01-02", 1, 1, paid), ("2024-01-08", 1, 1, paid)], Some(dec!(1)));
        check(&closes, &[("2024-01-04", 1, 1, paid)], Some(dec!(3)));
        check(&closes, &[("2024-01-03", 1, 1, None)], None);
        // On the day of the split, the amount is per new share. Before it, the amount is per old share: half as much
        // per new share.
        check(&closes, &[("2024-01-03", 1, 2, paid)], Some(dec!(106.0808)));
        check(&closes, &[("2024-01-04", 1, 1, paid), ("2024-01-05", 1, 2, Some(dec!(0)))], Some(dec!(104)));
    }
}
