//! Volatility and beta of a security (R23), computed from fixed-point returns of the adjusted close.
//!
//! - Volatility: sample standard deviation (n - 1) of the newest 252 daily returns x sqrt(252) x 100. It is null with
//!   fewer than 60 returns.
//! - Beta: covariance of the monthly returns of security and benchmark, divided by the variance of the benchmark's
//!   returns. It uses the last 60 months. It is null with fewer than 24 months in which both have a return.
//!
//! A month is used only after its last session. A monthly return needs closes in two consecutive months.
//!
//! Returns are integers in units of 10^-15. Source: `empyrical`'s annual volatility and beta. This service chose the
//! minimum of 24 months.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::adjustment::AdjustmentFactor;
use super::series::{PriceSeries, month_number};
use crate::day::day_number;
use crate::metrics::arithmetic::{HUNDRED, quotient, root};
use crate::metrics::calendar::ends_month;

/// Returns of a security's adjusted close from month end to month end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MonthlyReturns {
    /// Pairs of a month and its return, ascending by month. A month is year x 12 + month - 1. Its return is from the
    /// previous month end, in units of 10^-15.
    returns: Vec<(i32, i128)>,
}

/// The return 1 (100 %) in units of 10^-15.
const ONE: i128 = 1_000_000_000_000_000;
/// Maximum number of daily returns in a volatility.
pub(crate) const DAILY_RETURNS: usize = 252;
/// Minimum number of daily returns in a volatility.
pub(crate) const DAILY_MINIMUM: usize = 60;
const MONTHS: i32 = 60;
/// Minimum number of months with a return of both the security and the benchmark.
pub(crate) const BETA_MINIMUM: usize = 24;

/// Annualised volatility, percent; `None` with fewer than 60 returns.
pub(crate) fn volatility(series: &PriceSeries<'_>, factors: &[AdjustmentFactor]) -> Option<Decimal> {
    let bars = series.bars.len();
    let count = bars.checked_sub(1)?.min(DAILY_RETURNS);
    if count < DAILY_MINIMUM {
        return None;
    }
    let first = bars - 1 - count;
    let mut events = Events::after(factors, series.date(first));
    let returns: Option<Vec<i128>> =
        (first + 1..bars).map(|index| events.growth(series, index - 1, index)).collect();
    let returns = returns?;
    let length = i128::try_from(count).ok()?;
    let mean = returns.iter().try_fold(0i128, |sum, value| sum.checked_add(*value))? / length;
    let squares = returns.iter().try_fold(0i128, |squares, value| {
        let deviation = value - mean;
        squares.checked_add(deviation.checked_mul(deviation)?)
    })?;
    if squares == 0 {
        return Some(Decimal::ZERO);
    }
    let variance = quotient(
        squared_decimal(squares)?.checked_mul(Decimal::from(DAILY_RETURNS))?,
        Decimal::from(count - 1),
    )?;
    root(variance, 2)?.checked_mul(HUNDRED)
}

/// Converts a sum of squared returns to a decimal. `squares` is in units of 10^-30. Digits that do not fit a decimal
/// are dropped.
fn squared_decimal(mut squares: i128) -> Option<Decimal> {
    let mut scale = 30u32;
    while Decimal::try_from_i128_with_scale(squares, scale).is_err() {
        squares /= 10;
        scale = scale.checked_sub(1)?;
    }
    Decimal::try_from_i128_with_scale(squares, scale).ok()
}

/// Beta of a security against a benchmark. `None` if the benchmark's returns are all equal, or if too few months have
/// returns of both.
pub(crate) fn beta(own: &MonthlyReturns, benchmark: &MonthlyReturns) -> Option<Decimal> {
    let mut pairs: Vec<(i128, i128)> = Vec::with_capacity(own.returns.len());
    let mut others = benchmark.returns.iter().peekable();
    for (month, value) in &own.returns {
        while others.next_if(|(other, _)| other < month).is_some() {}
        if let Some((_, other)) = others.next_if(|(other, _)| other == month) {
            pairs.push((*value, *other));
        }
    }
    if pairs.len() < BETA_MINIMUM {
        return None;
    }
    let length = i128::try_from(pairs.len()).ok()?;
    let mean = |side: fn(&(i128, i128)) -> i128| {
        pairs.iter().map(side).try_fold(0i128, |sum, value| sum.checked_add(value)).map(|sum| sum / length)
    };
    let (mean_own, mean_other) = (mean(|pair| pair.0)?, mean(|pair| pair.1)?);
    let (mut covariance, mut variance) = (0i128, 0i128);
    for (value, other) in pairs {
        let deviation = other - mean_other;
        covariance = covariance.checked_add((value - mean_own).checked_mul(deviation)?)?;
        variance = variance.checked_add(deviation.checked_mul(deviation)?)?;
    }
    ratio(covariance, variance)
}

/// Quotient of two large integers. Both are first divided by the same power of ten, so that they have at most 27
/// digits.
fn ratio(mut a: i128, mut b: i128) -> Option<Decimal> {
    const LIMIT: i128 = 1_000_000_000_000_000_000_000_000_000;
    while a.abs() > LIMIT || b.abs() > LIMIT {
        (a, b) = (a / 10, b / 10);
    }
    quotient(Decimal::try_from_i128_with_scale(a, 0).ok()?, Decimal::try_from_i128_with_scale(b, 0).ok()?)
}

/// Monthly returns of the last 60 complete months up to `as_of`.
pub(crate) fn month_ends(
    series: &PriceSeries<'_>,
    factors: &[AdjustmentFactor],
    as_of: NaiveDate,
) -> MonthlyReturns {
    let ends = series.month_ends(last_month(as_of), MONTHS + 1);
    let mut events = match ends.first() {
        Some((_, index)) => Events::after(factors, series.date(*index)),
        None => return MonthlyReturns::default(),
    };
    let returns = ends.windows(2).filter_map(|pair| {
        let growth = events.growth(series, pair[0].1, pair[1].1);
        // A return needs closes in two consecutive months.
        (pair[1].0 == pair[0].0 + 1).then_some(())?;
        Some((pair[1].0, growth?))
    });
    MonthlyReturns { returns: returns.collect() }
}

/// Last calendar month whose sessions are all on or before `as_of`, as year x 12 + month - 1.
pub(crate) fn last_month(as_of: NaiveDate) -> i32 {
    month_number(as_of) - i32::from(!ends_month(as_of))
}

/// Adjustment factors for the next returns. [`Events::growth`] removes the factors that it has applied.
struct Events<'a> {
    ahead: &'a [AdjustmentFactor],
}

impl<'a> Events<'a> {
    fn after(factors: &'a [AdjustmentFactor], day: NaiveDate) -> Self {
        Self { ahead: &factors[factors.partition_point(|event| event.ex_date <= day)..] }
    }

    /// Return of the adjusted close between two bars, in units of 10^-15; `None` on overflow. Calls must be in
    /// ascending order of `to`.
    fn growth(&mut self, series: &PriceSeries<'_>, from: usize, to: usize) -> Option<i128> {
        let raw = i128::from(series.bars.close[to])
            .checked_mul(ONE)?
            .checked_div(i128::from(series.bars.close[from]))?;
        let Some(next) = self.ahead.first() else { return Some(raw - ONE) };
        if day_number(next.ex_date) > series.bars.day[to] {
            return Some(raw - ONE);
        }
        let end = series.date(to);
        let passed = self.ahead.partition_point(|event| event.ex_date <= end);
        let (between, ahead) = self.ahead.split_at(passed);
        self.ahead = ahead;
        let mut growth = Decimal::try_from_i128_with_scale(raw, 15).ok()?;
        for event in between {
            growth = event.price_ratio().inverse().apply(quotient(growth, event.dividend_factor)?);
        }
        let scaled = growth.checked_mul(Decimal::from(1_000_000_000_000_000i64))?;
        i128::try_from(scaled.trunc()).ok().map(|growth| growth - ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bars::{Bar, BarVersion, Bars, MISSING};
    use crate::decimal::round;
    use crate::metrics::prices::adjustment::Splits;

    fn bars(closes: &[i64], first: &str, step: i32) -> Bars {
        let first = day_number(first.parse().unwrap());
        let mut bars = Bars { versions: vec![BarVersion::UNKNOWN], ..Bars::default() };
        for (day, close) in (0..).map(|i| first + i * step).zip(closes) {
            let bar = Bar {
                day,
                open: MISSING,
                high: MISSING,
                low: MISSING,
                close: *close,
                volume: 1,
                vwap: MISSING,
                trade_count: MISSING,
            };
            bars.push(bar, 0);
        }
        bars
    }

    #[test]
    fn alternating_prices() {
        let closes: Vec<i64> = (0..61).map(|i| 100 + i % 2).collect();
        let splits = Splits::default();
        let check = |closes: &[i64], expected: Option<Decimal>| {
            let bars = bars(closes, "2024-01-02", 1);
            assert_eq!(
                volatility(&PriceSeries::new(&bars, &splits), &[]).map(|v| round(v, 4)),
                expected,
                "{}",
                closes.len()
            );
        };
        check(&closes, Some(dec!(15.9292)));
        check(&closes[..60], None);
        check(&[7; 100], Some(dec!(0)));
    }

    #[test]
    fn twice_the_benchmarks_moves_is_a_beta_of_two() {
        let returns = |by: i128| MonthlyReturns {
            returns: (0..24).map(|month| (month, by * (i128::from(month) - 7) * ONE / 1000)).collect(),
        };
        assert_eq!(beta(&returns(2), &returns(1)), Some(dec!(2)));
        assert_eq!(beta(&returns(-1), &returns(2)), Some(dec!(-0.5)));
        assert_eq!(beta(&MonthlyReturns { returns: returns(1).returns[1..].to_vec() }, &returns(1)), None);
        assert_eq!(beta(&returns(1), &returns(0)), None);
    }

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    #[test]
    fn a_month_counts_once_its_last_session_has_passed() {
        for (day, month) in
            [("2024-05-30", 4), ("2024-05-31", 5), ("2024-06-27", 5), ("2024-06-28", 6), ("2024-06-29", 6)]
        {
            assert_eq!(last_month(date(day)), month_number(date("2024-01-01")) + month - 1, "{day}");
        }
    }

    fn ex_day(day: &str, split: i64, dividend_factor: Option<Decimal>) -> AdjustmentFactor {
        AdjustmentFactor {
            ex_date: date(day),
            split: crate::metrics::prices::adjustment::Ratio { from: dec!(1), to: split.into() },
            dividend_factor: dividend_factor.unwrap_or(Decimal::ONE),
            dividend: dec!(0),
            value: None,
            price_only: crate::metrics::prices::adjustment::Ratio::ONE,
        }
    }

    #[test]
    fn splits_and_dividends_are_no_moves_of_the_price() {
        let plain: Vec<i64> = (0..61).map(|i| 1000 + 10 * (i % 2)).collect();
        let halved: Vec<i64> = (0..61).map(|i| (1000 + 10 * (i % 2)) / if i < 30 { 1 } else { 2 }).collect();
        let splits = Splits::default();
        let found = |closes: &[i64], factors: &[AdjustmentFactor]| {
            volatility(&PriceSeries::new(&bars(closes, "2024-01-02", 1), &splits), factors)
                .map(|v| round(v, 4))
        };
        let split = [ex_day("2024-01-02", 7, None), ex_day("2024-02-01", 2, None)];
        assert_eq!(found(&halved, &split), Some(dec!(15.9292)));
        assert_eq!(found(&halved, &[ex_day("2024-02-01", 1, Some(dec!(0.5)))]), Some(dec!(15.9292)));
        assert_eq!(found(&plain, &[ex_day("2024-03-10", 2, None)]), Some(dec!(15.9292)));
        assert!(found(&halved, &[]) > Some(dec!(100)));
        // Only the newest 252 returns are used.
        let long: Vec<i64> =
            (0..300).map(|i| if i < 47 { 10 + i * i } else { 1000 + 10 * (i % 2) }).collect();
        assert_eq!(found(&long, &[]), found(&long[47..], &[]));
        let with = |index: usize| {
            let mut other = long.clone();
            other[index] = 500;
            found(&other, &[])
        };
        assert_eq!(with(46), found(&long, &[]));
        assert!(with(47) > found(&long, &[]));
    }

    #[test]
    fn a_month_without_its_neighbour_has_no_return() {
        let days = ["2023-12-29", "2024-01-31", "2024-02-29", "2024-04-30", "2024-05-31", "2024-06-28"];
        let closes = [90, 100, 110, 120, 132, 200];
        let mut some = bars(&closes, "2024-01-01", 1);
        some.day = days.map(|day| day_number(date(day))).to_vec();
        let splits = Splits::default();
        let series = PriceSeries::new(&some, &splits);
        let january = month_number(date("2024-01-01"));
        let returns = |factors: &[AdjustmentFactor], as_of| -> Vec<(i32, Decimal)> {
            let percent = |value: i128| round(Decimal::from_i128_with_scale(value, 13), 2);
            month_ends(&series, factors, date(as_of))
                .returns
                .iter()
                .map(|(month, value)| (month - january, percent(*value)))
                .collect()
        };
        let plain = [(0, dec!(11.11)), (1, dec!(10)), (4, dec!(10))];
        assert_eq!(returns(&[], "2024-06-27"), plain);
        assert_eq!(returns(&[], "2024-06-28")[3], (5, dec!(51.52)));
        let paid = [ex_day("2024-04-10", 1, Some(dec!(0.5))), ex_day("2024-05-10", 1, Some(dec!(0.9)))];
        assert_eq!(returns(&paid, "2024-06-27"), [plain[0], plain[1], (4, dec!(22.22))]);
        let none = Bars::default();
        assert_eq!(
            month_ends(&PriceSeries::new(&none, &splits), &[], date("2024-06-27")),
            MonthlyReturns::default()
        );
    }

    #[test]
    fn beta_is_of_the_months_that_both_have() {
        let moved = |month: i32| i128::from((month * 7) % 11 - 3) * ONE / 1000;
        let own = (0..30)
            .filter(|month| *month != 5)
            .map(|month| (month, if month < 2 || month == 9 { ONE } else { 2 * moved(month) + ONE / 100 }));
        let other = (2..40)
            .filter(|month| *month != 9)
            .map(|month| (month, if month == 5 { -ONE } else { moved(month) }));
        let (own, other) =
            (MonthlyReturns { returns: own.collect() }, MonthlyReturns { returns: other.collect() });
        assert_eq!(beta(&own, &other).map(|beta| round(beta, 8)), Some(dec!(2)));
        assert_eq!(beta(&other, &own).map(|beta| round(beta, 8)), Some(dec!(0.5)));
    }

    #[test]
    fn a_steady_climb_goes_with_nothing() {
        // The benchmark's mean is not a finite decimal.
        let other = |month: i32| i128::from(month % 7 * month) * ONE / 10_000;
        let other = MonthlyReturns { returns: (0..27).map(|month| (month, other(month))).collect() };
        let steady = MonthlyReturns { returns: (0..27).map(|month| (month, ONE / 100)).collect() };
        assert_eq!(beta(&steady, &other), Some(dec!(0)));
    }

    #[test]
    fn a_beta_is_told_of_the_calmest_and_of_the_wildest() {
        // Moves up and down by `by` hundredths of a percent.
        let swings = |by: i128| {
            let side = |month: i32| if month % 2 == 0 { ONE } else { -ONE };
            MonthlyReturns { returns: (0..60).map(|month| (month, by * side(month) / 10_000)).collect() }
        };
        for (own, other, expected) in [
            (9_000, 10, dec!(900)),
            (10, 8_000, dec!(0.00125)),
            (9_000, 4_500, dec!(2)),
            (-9_000, 10, dec!(-900)),
            (0, 9_000, dec!(0)),
        ] {
            let found = beta(&swings(own), &swings(other));
            assert_eq!(found, Some(expected), "{own} to {other}");
        }
    }

    #[test]
    fn what_a_decimal_holds_is_divided_and_rooted_whole() {
        let ten_to_27 = 10i128.pow(27);
        assert_eq!(ratio(ten_to_27, 1 << 32), Some(dec!(232830643653869628.90625)));
        assert_eq!(ratio(1 << 30, ten_to_27), Some(dec!(0.000000000000000001073741824)));
        // A price that doubled, and then moved by 10^-14.
        assert_eq!(squared_decimal(ONE * ONE + 100), Some(dec!(1.0000000000000000000000000001)));
        assert_eq!(squared_decimal(ONE * ONE * 9 + 999), Some(dec!(9)));
    }
}
