//! 52-week range, moving averages and average volume, on the as-of date's share basis (R22).
//!
//! The 52-week range is the highest and lowest intraday price of the 12 months up to the as-of date. It is adjusted for
//! splits and price-only actions (R35), but not for dividends. If a bar has no high or low, its close is used instead.
//!
//! Moving averages use the newest 50 or 200 closes. They are null with fewer closes. Average volume is the mean of the
//! newest 30 sessions. Sessions without a volume are left out.
//!
//! Source: the usual 52-week range. This service chose to use intraday prices and to adjust them for splits.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::adjustment::Ratio;
use super::series::PriceSeries;
use crate::bars::MISSING;
use crate::metrics::arithmetic::{clamp_to_limit, quotient, round_to_integer};
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
