//! 52-week range, moving averages and average volume, on the as-of date's share basis (R22).
//!
//! The 52-week range is the highest and lowest intraday price of the 12 months up to the as-of date. It is adjusted for
//! splits and price-only actions (R35), but not for dividends. If a bar has no high or low, its close is used instead.
//!
//! Moving averages use the newest 50 or 200 closes. They are null with fewer closes. Average volume is the mean of the
//! newest 30 sessions. Sessions without a volume are left out.
//!
//! Source: the usual 52-week range. This service chose to use intraday prices and to adjust them for splits.
//!
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
use crate::bars::MISSING;
use crate::day::{date_of, day_number, position_on_or_after};
use crate::metrics::arithmetic::{HUNDRED, clamp_to_limit, quotient, round_to_integer};
use crate::metrics::calendar::months_before;

/// Number of newest sessions in the average volume. Bars before these sessions can be loaded without a volume. If they
/// are also older than 12 months, they can be loaded without high and low too.
pub(crate) const VOLUME_SESSIONS: usize = 30;

/// Highest or lowest price of a range, with its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriceExtreme {
    /// Price on the as-of date's share basis.
    pub price: Decimal,
    /// Session with the price.
    pub date: NaiveDate,
}

/// Highest price and lowest price of the last 12 months, intraday. `None` without a bar.
pub(crate) fn year_range(series: &PriceSeries<'_>, as_of: NaiveDate) -> Option<(PriceExtreme, PriceExtreme)> {
    let from = series.at_or_before(months_before(as_of, 12)).map_or(0, |index| index + 1);
    let mut range: Option<(PriceExtreme, PriceExtreme)> = None;
    for BasisRun { start, end, prices, .. } in same_basis(series, from, as_of) {
        let high_of = |index: usize| present(series.bars.high[index], series.bars.close[index]);
        let low_of = |index: usize| present(series.bars.low[index], series.bars.close[index]);
        // If several bars have the extreme price, the newest bar is used.
        let (Some(highest), Some(lowest)) =
            ((start..end).max_by_key(|i| high_of(*i)), (start..end).rev().min_by_key(|i| low_of(*i)))
        else {
            continue;
        };
        let extreme = |index: usize, value: i64| PriceExtreme {
            price: prices.apply(Decimal::new(value, series.bars.scale)),
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

/// High or low of a bar. If the value is missing, 0 or less, the close is used instead. Vendors write 0 for an unknown
/// value.
fn present(value: i64, close: i64) -> i64 {
    if value == MISSING || value <= 0 { close } else { value }
}

/// Mean close of the newest `count` bars, on the price basis of the as-of date; `None` with fewer bars.
pub(crate) fn average_close(series: &PriceSeries<'_>, count: usize, as_of: NaiveDate) -> Option<Decimal> {
    let from = series.bars.len().checked_sub(count)?;
    let mut sum = Decimal::ZERO;
    for BasisRun { start, end, prices, .. } in same_basis(series, from, as_of) {
        let closes: i128 = series.bars.close[start..end].iter().map(|close| i128::from(*close)).sum();
        let closes = Decimal::try_from_i128_with_scale(closes, series.bars.scale).ok()?;
        sum = clamp_to_limit(sum.checked_add(prices.apply(closes)));
    }
    quotient(sum, Decimal::from(count))
}

/// Mean volume of the newest `count` bars in shares, on the share basis of the as-of date. Bars without a volume are
/// left out. `None` if all are without a volume.
pub(crate) fn average_volume(series: &PriceSeries<'_>, count: usize, as_of: NaiveDate) -> Option<i64> {
    let from = series.bars.len().saturating_sub(count);
    let (mut sum, mut days) = (Decimal::ZERO, 0usize);
    for BasisRun { start, end, shares: basis, .. } in same_basis(series, from, as_of) {
        let volumes =
            series.bars.volume.present_values_in(start..end).iter().filter(|volume| **volume != MISSING);
        days += volumes.clone().count();
        let shares: i128 = volumes.map(|volume| i128::from(*volume)).sum();
        sum = clamp_to_limit(
            sum.checked_add(basis.inverse().apply(Decimal::try_from_i128_with_scale(shares, 0).ok()?)),
        );
    }
    quotient(sum, Decimal::from(days)).and_then(round_to_integer)
}

/// Consecutive bars `start..end` with no split or price-only action between them.
struct BasisRun {
    start: usize,
    end: usize,
    /// Ratio that converts prices to the basis of the as-of date.
    prices: Ratio,
    /// Ratio that converts amounts per share to the basis of the as-of date. Its inverse converts volumes.
    shares: Ratio,
}

/// Runs of bars with the same adjustment, from index `from` to the newest bar.
fn same_basis(series: &PriceSeries<'_>, from: usize, as_of: NaiveDate) -> Vec<BasisRun> {
    let mut runs = Vec::with_capacity(1);
    let mut start = from;
    while start < series.bars.len() {
        let day = series.date(start);
        let mut ex_dates = series.splits.events().iter().map(|split| split.ex_date);
        let next = ex_dates.find(|ex_date| *ex_date > day && *ex_date <= as_of);
        let end = next.and_then(|ex_date| series.at_or_after(ex_date)).unwrap_or(series.bars.len());
        let (prices, shares) =
            (series.splits.price_ratio_to_basis(day, as_of), series.splits.ratio_to_basis(day, as_of));
        runs.push(BasisRun { start, end, prices, shares });
        start = end;
    }
    runs
}

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
    fn session(&self, day: &AdjustmentFactor) -> usize {
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
    use crate::bars::{Bar, BarVersion, Bars};
    use crate::day::day_number;
    use crate::metrics::prices::adjustment::{SplitEvent, Splits};

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    /// Bars from tuples of day, high, low, close and volume.
    fn bars(rows: &[(&str, i64, i64, i64, i64)]) -> Bars {
        let mut bars = Bars { versions: vec![BarVersion::UNKNOWN], ..Bars::default() };
        for (day, high, low, close, volume) in rows {
            let day = day_number(date(day));
            let (open, vwap, trade_count) = (MISSING, MISSING, MISSING);
            bars.push(
                Bar { day, open, high: *high, low: *low, close: *close, volume: *volume, vwap, trade_count },
                0,
            );
        }
        bars
    }

    fn halved(on: &str) -> Splits {
        Splits::new(vec![SplitEvent::of_shares(date(on), Ratio { from: dec!(1), to: dec!(2) })])
    }

    #[test]
    fn the_range_of_twelve_months_on_todays_shares() {
        let bars = bars(&[
            ("2024-01-31", 900, 1, 500, 1),
            ("2024-02-01", 240, 190, 230, 1),
            ("2024-06-03", MISSING, 0, 99, 1),
            ("2025-01-31", 120, 98, 110, 1),
        ]);
        let splits = halved("2024-03-11");
        let check = |as_of: &str, high: (Decimal, &str), low: (Decimal, &str)| {
            let (highest, lowest) = year_range(&PriceSeries::new(&bars, &splits), date(as_of)).unwrap();
            let extreme = |(price, day): (Decimal, &str)| PriceExtreme { price, date: date(day) };
            assert_eq!((highest, lowest), (extreme(high), extreme(low)), "{as_of}");
        };
        // If two highs are equal, the newest is used. The close replaces an unknown high or low.
        check("2025-01-31", (dec!(120), "2025-01-31"), (dec!(95), "2024-02-01"));
        check("2025-01-30", (dec!(450), "2024-01-31"), (dec!(0.5), "2024-01-31"));
        assert_eq!(year_range(&PriceSeries::new(&bars, &splits), date("2030-01-31")), None);
    }

    #[test]
    fn averages_need_all_their_bars_and_count_shares_of_today() {
        let bars = bars(&[
            ("2024-03-07", 1, 1, 100, 10),
            ("2024-03-08", 1, 1, 102, MISSING),
            ("2024-03-11", 1, 1, 52, 40),
        ]);
        let (splits, as_of) = (halved("2024-03-11"), date("2024-03-11"));
        let series = PriceSeries::new(&bars, &splits);
        assert_eq!(average_close(&series, 3, as_of), Some(dec!(51)));
        assert_eq!(average_close(&series, 2, as_of), Some(dec!(51.5)));
        assert_eq!(average_close(&series, 4, as_of), None);
        assert_eq!(average_volume(&series, 30, as_of), Some(30));
        assert_eq!(average_volume(&series, 1, as_of), Some(40));
    }
}

#[cfg(test)]
mod total_return_tests {
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
