//! Conversion of split-adjusted bars to raw bars, with integer arithmetic (R10, R30, R35).

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::bars::{Bars, MISSING};
use crate::day::date_of;
use crate::metrics::merge::feed_adjustments::ListedSplits;
use crate::metrics::prices::adjustment::{Ratio, whole_terms};

/// Maximum number of decimal places of a price after its conversion to raw.
const PLACES: u32 = 10;

/// Converts split-adjusted bars to raw bars. A bar is left out if its close overflows or rounds to 0.
///
/// The basis day of a bar is the day up to which the feed adjusted it. A basis day of 0 means `newest`.
pub(crate) fn raw_bars(bars: Bars, splits: &ListedSplits, newest: NaiveDate) -> Bars {
    if bars.versions.iter().all(|version| version.basis_day.is_none()) {
        return bars;
    }
    let runs = runs(&bars, splits, newest);
    if runs.iter().all(|run| run.prices.is_one() && run.shares.is_one()) {
        return bars;
    }
    let scale = (bars.scale..=PLACES.max(bars.scale))
        .rev()
        .find(|scale| runs.iter().all(|run| run.fits(&bars, *scale)));
    let scale = scale.unwrap_or(bars.scale);
    let mut raw = Bars { scale, versions: bars.versions.clone(), ..Bars::default() };
    for run in &runs {
        let prices = RatioMultiplier::of(run.prices, scale - bars.scale);
        let shares = RatioMultiplier::of(run.shares.inverse(), 0);
        for index in run.start..run.end {
            let price = |value: i64| multiply(value, prices.as_ref());
            let mut bar = bars.bar(index);
            (bar.open, bar.high, bar.low, bar.close) =
                (price(bar.open), price(bar.high), price(bar.low), price(bar.close));
            bar.vwap = price(bar.vwap);
            bar.volume = multiply(bar.volume, shares.as_ref());
            if bar.close > 0 {
                raw.push(bar, bars.version[index]);
            }
        }
    }
    raw
}

/// Consecutive bars with the same conversion to raw.
struct BasisRun {
    start: usize,
    end: usize,
    /// Ratio that converts prices to raw prices.
    prices: Ratio,
    /// Ratio that multiplies a volume by `to` / `from` to give the raw volume.
    shares: Ratio,
}

impl BasisRun {
    /// True if every price of the run fits 64 bits with `scale` decimal places.
    fn fits(&self, bars: &Bars, scale: u32) -> bool {
        let run = self.start..self.end;
        let columns = [&bars.open, &bars.high, &bars.low].map(|column| column.present_values_in(run.clone()));
        let largest = columns.into_iter().chain([&bars.close[run]]).flatten().max();
        let multiplier = RatioMultiplier::of(self.prices, scale - bars.scale);
        largest
            .is_none_or(|largest| *largest == MISSING || multiply(*largest, multiplier.as_ref()) != MISSING)
    }
}

/// Raw close of one bar. The meaning of `newest` is that of [`raw_bars`].
pub(super) fn raw_close(bars: &Bars, index: usize, listed: &ListedSplits, newest: NaiveDate) -> Decimal {
    let (day, basis) = (date_of(bars.day[index]), basis_of(bars, index, newest));
    let ratio = listed.splits.price_ratio_between(day, basis).inverse();
    ratio.apply(Decimal::new(bars.close[index], bars.scale))
}

/// Day up to which the feed adjusted a bar; for a raw bar, its own day.
fn basis_of(bars: &Bars, index: usize, newest: NaiveDate) -> NaiveDate {
    match bars.version_of(index).basis_day {
        None => date_of(bars.day[index]),
        Some(0) => newest,
        Some(basis) => date_of(basis),
    }
}

/// Divides bars into runs with the same conversion. A new run begins at a split, and at a bar of another version.
fn runs(bars: &Bars, listed: &ListedSplits, newest: NaiveDate) -> Vec<BasisRun> {
    let ListedSplits { splits, of_volumes } = listed;
    let mut runs: Vec<BasisRun> = Vec::new();
    for index in 0..bars.len() {
        let day = date_of(bars.day[index]);
        let continues = runs.last().is_some_and(|run| {
            let since = date_of(bars.day[run.start]);
            bars.version[run.start] == bars.version[index]
                && splits.events().iter().all(|split| split.ex_date <= since || split.ex_date > day)
        });
        match runs.last_mut().filter(|_| continues) {
            Some(run) => run.end = index + 1,
            None => {
                let basis = basis_of(bars, index, newest);
                runs.push(BasisRun {
                    start: index,
                    end: index + 1,
                    prices: splits.price_ratio_between(day, basis).inverse(),
                    shares: of_volumes.price_ratio_between(day, basis).inverse(),
                });
            }
        }
    }
    runs
}

/// Multiplier of integer prices: a ratio times a power of ten, as a fraction of two integers.
struct RatioMultiplier {
    numerator: i128,
    denominator: i128,
}

impl RatioMultiplier {
    /// Multiplier `ratio.from` / `ratio.to` x 10^`places`; `None` on overflow.
    fn of(ratio: Ratio, places: u32) -> Option<Self> {
        let (from, denominator) = whole_terms(ratio)?;
        let numerator = from.checked_mul(10i128.checked_pow(places)?)?;
        (denominator > 0).then_some(Self { numerator, denominator })
    }
}

/// `value` times the multiplier, rounded half away from zero; [`MISSING`] if `value` is absent or the result overflows.
fn multiply(value: i64, multiplier: Option<&RatioMultiplier>) -> i64 {
    let Some(multiplier) = multiplier.filter(|_| value != MISSING) else { return MISSING };
    let Some(product) = i128::from(value).checked_mul(multiplier.numerator) else { return MISSING };
    let half = multiplier.denominator / 2;
    let rounded = (product + product.signum() * half) / multiplier.denominator;
    i64::try_from(rounded).unwrap_or(MISSING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bars::{Bar, BarVersion};
    use crate::day::day_number;
    use crate::metrics::prices::adjustment::{SplitEvent, Splits};

    fn listed(splits: Vec<SplitEvent>) -> ListedSplits {
        let splits = Splits::new(splits);
        ListedSplits { of_volumes: splits.clone(), splits }
    }

    fn check(split: (i64, i64), basis: Option<&str>, close: i64, scale: u32, expected: &str) {
        let day = |text: &str| text.parse::<NaiveDate>().unwrap();
        let basis_day = basis.map(|basis| if basis == "0" { 0 } else { day_number(day(basis)) });
        let mut bars = Bars {
            scale,
            versions: vec![BarVersion { basis_day, ..BarVersion::UNKNOWN }],
            ..Bars::default()
        };
        let bar = Bar {
            day: day_number(day("2024-01-02")),
            open: MISSING,
            high: close,
            low: close,
            close,
            volume: 700,
            vwap: MISSING,
            trade_count: 7,
        };
        bars.push(bar, 0);
        let ratio = Ratio { from: split.0.into(), to: split.1.into() };
        let splits = listed(vec![SplitEvent::of_shares(day("2024-03-01"), ratio)]);
        let raw = raw_bars(bars, &splits, day("2024-06-28"));
        let found = Decimal::new(raw.close[0], raw.scale).normalize();
        assert_eq!(
            (found.to_string().as_str(), raw.open[0], raw.trade_count[0]),
            (expected, MISSING, 7),
            "{split:?} {basis:?}"
        );
    }

    #[test]
    fn adjusted_bars_return_to_their_own_day() {
        check((1, 7), Some("0"), 1175, 4, "0.8225");
        check((1, 7), Some("2024-06-28"), 1175, 4, "0.8225");
        check((1, 7), Some("2024-02-29"), 1175, 4, "0.1175");
        check((1, 7), None, 1175, 4, "0.1175");
        check((3, 1), Some("0"), 100, 0, "33.3333333333");
        check((3, 1), Some("0"), 1_000_000, 4, "33.3333333333");
        check((3, 1), Some("0"), 5_000_000_000_000_000_000, 8, "16666666666.66666667");
        assert_eq!(multiply(7, RatioMultiplier::of(Ratio { from: dec!(1.5), to: dec!(2) }, 0).as_ref()), 5);
    }

    #[test]
    fn a_half_is_rounded_away_from_zero() {
        let divided = |value: i64, shares: i64| {
            multiply(value, RatioMultiplier::of(Ratio { from: dec!(1), to: shares.into() }, 0).as_ref())
        };
        for (value, half, quarter) in
            [(8, 4, 2), (7, 4, 2), (6, 3, 2), (5, 3, 1), (2, 1, 1), (1, 1, 0), (0, 0, 0)]
        {
            assert_eq!((divided(value, 2), divided(value, 4)), (half, quarter), "{value}");
            assert_eq!((divided(-value, 2), divided(-value, 4)), (-half, -quarter), "-{value}");
        }
    }

    /// Converts an adjusted close to a raw close, both in units of 10^-10. `splits` are the splits after the bar, as
    /// pairs of old and new shares.
    fn smallest(close: i64, splits: &[(Decimal, Decimal)]) -> Option<i64> {
        let day = |month: u32| NaiveDate::from_ymd_opt(2024, month, 1).unwrap();
        let version = BarVersion { basis_day: Some(0), ..BarVersion::UNKNOWN };
        let mut bars = Bars { scale: PLACES, versions: vec![version], ..Bars::default() };
        let (open, high, low, vwap, trade_count) = (MISSING, MISSING, MISSING, MISSING, MISSING);
        bars.push(Bar { day: day_number(day(1)), open, high, low, close, volume: 1, vwap, trade_count }, 0);
        let split = |(month, (from, to)): (u32, &(Decimal, Decimal))| {
            SplitEvent::of_shares(day(month), Ratio { from: *from, to: *to })
        };
        let raw = raw_bars(bars, &listed((2..).zip(splits).map(split).collect()), day(12));
        raw.close.first().copied()
    }

    #[test]
    fn a_price_of_nothing_is_left_out() {
        let reverse = (dec!(3), dec!(1));
        assert_eq!(smallest(1, &[reverse]), None);
        assert_eq!(smallest(2, &[reverse]), Some(1));
        // If three splits overflow the raw close, the bar is left out.
        let absurd = (dec!(0.0000000001), dec!(1));
        assert_eq!(smallest(1, &[absurd; 3]), None);
        assert_eq!(smallest(1, &[absurd]), Some(10_000_000_000));
    }
}
