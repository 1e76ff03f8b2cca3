//! Cumulative adjustment factors, which convert raw prices and volumes to adjusted prices and volumes (R10, R11).
//!
//! Invariant: a volume computed with integers equals the volume computed with decimals. Both are rounded half away from
//! zero.
//!
//! Price multiplier: one cumulative factor as a fixed-point number with 64 fraction bits (R10, R11).
//!
//! Fixed-point multiplication is fast, but the factor has a small error. If the product is very close to a rounding
//! boundary, this error could change the rounded price. The price is then computed with decimals instead.
//!
//! Invariant: every result equals the result computed with decimals, rounded once, half away from zero.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::day::day_number;
use crate::decimal::round;
use crate::metrics::arithmetic::clamp_to_limit;
use crate::metrics::prices::adjustment::{AdjustmentFactor, Ratio};

/// Largest number of old or new shares in a split ratio for which volumes are converted with 64-bit integers. With a
/// larger number, volumes are converted with decimals.
const MAX_SHARES: u64 = 1_000_000;
/// Limit for the product of volume and new shares in [`CumulativeFactor::fast_volume`]. From this limit on, volumes are
/// converted with decimals, which clamp large results.
const MAX_PRODUCT: u64 = 1_000_000_000_000_000_000;

/// Price basis of a response: the kinds of events for which earlier prices are adjusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PriceBasis {
    /// True if prices and volumes are adjusted for splits and other changes of the share count.
    pub split: bool,
    /// True if prices are adjusted for price-only actions (R35). Such an action changes the price but not the share
    /// count, for example a spin-off reported as a ratio.
    pub spin_off: bool,
    /// True if prices are adjusted for cash dividends, and for spin-offs reported as a value per share.
    pub dividend: bool,
}

impl PriceBasis {
    /// Basis of prices as traded, without adjustment.
    pub const RAW: Self = Self { split: false, spin_off: false, dividend: false };
    /// Basis of prices in a chart: adjusted for splits and price-only actions, but not for dividends.
    pub const SPLIT: Self = Self { split: true, spin_off: true, dividend: false };
    /// Basis with all kinds of adjustment.
    pub const ALL: Self = Self { split: true, spin_off: true, dividend: true };

    /// Basis with every kind of adjustment that `self` or `other` has.
    pub fn and(self, other: Self) -> Self {
        Self {
            split: self.split || other.split,
            spin_off: self.spin_off || other.spin_off,
            dividend: self.dividend || other.dividend,
        }
    }
}

/// Factor that adjusts the raw prices of all days from one ex-date to the day before the next ex-date. It is the
/// product of the adjustments of the next ex-date and of all ex-dates after it.
#[derive(Debug, Clone)]
pub struct CumulativeFactor {
    /// Day number of the next ex-date; `i32::MAX` if no ex-date follows. The factor applies to the days before that
    /// ex-date.
    before: i32,
    split: Ratio,
    price_only: Ratio,
    dividend: Decimal,
    /// Old and new shares of `split`, for [`Self::fast_volume`]. `None` if they are not integers from 1 to
    /// [`MAX_SHARES`], and for the days after the last ex-date.
    shares: Option<(u64, u64)>,
}

impl CumulativeFactor {
    /// Converts a raw price to a price basis. The result is rounded to 18 decimal places.
    pub fn exact(&self, value: Decimal, basis: PriceBasis) -> Decimal {
        let (ratio, dividend) = self.multipliers(basis);
        exact(value, ratio, dividend)
    }

    /// Multipliers that convert raw prices to a price basis. The first is the ratio of the splits and price-only
    /// actions. The second is the dividend factor. A kind of adjustment that the basis leaves out counts as 1.
    pub(super) fn multipliers(&self, basis: PriceBasis) -> (Ratio, Decimal) {
        let ratio = if basis.split { self.split } else { Ratio::ONE };
        let ratio = if basis.spin_off { ratio.then(self.price_only) } else { ratio };
        (ratio, if basis.dividend { self.dividend } else { Decimal::ONE })
    }

    /// Multiplier that converts raw prices to a price basis, rounded to 12 decimal places.
    pub fn factor(&self, basis: PriceBasis) -> Decimal {
        round(self.exact(Decimal::ONE, basis), 12)
    }

    /// Converts a volume to the newest share basis. The result is always `Some`, because a converted volume is clamped
    /// to 10^18.
    pub fn adjusted_volume(&self, volume: i64) -> Option<i64> {
        if let Some(shares) = self.fast_volume(volume) {
            return Some(shares);
        }
        if self.split.is_one() {
            return Some(volume);
        }
        let shares = round(round(self.split.inverse().apply(volume.into()), 18), 0);
        i64::try_from(shares).ok()
    }

    /// Converts a volume with 64-bit integers. `None` if the conversion needs decimals.
    fn fast_volume(&self, volume: i64) -> Option<i64> {
        let (old, new) = self.shares?;
        let product =
            u64::try_from(volume).ok()?.checked_mul(new).filter(|product| *product < MAX_PRODUCT)?;
        // A quotient that is not exactly a midpoint between two integers is at least 1 / (2 x MAX_SHARES) away from any
        // midpoint. Decimals have smaller errors, so both conversions give the same integer.
        i64::try_from((product + old / 2) / old).ok()
    }
}

/// Old and new shares of a ratio, if both are integers from 1 to [`MAX_SHARES`].
fn small_shares(ratio: Ratio) -> Option<(u64, u64)> {
    let small = |shares: Decimal| {
        let whole = u64::try_from(shares).ok().filter(|whole| Decimal::from(*whole) == shares);
        whole.filter(|whole| (1..=MAX_SHARES).contains(whole))
    };
    Some((small(ratio.from)?, small(ratio.to)?))
}

/// Multiplies a raw price by a ratio and a dividend factor. The result is rounded to 18 decimal places.
pub(super) fn exact(value: Decimal, ratio: Ratio, dividend: Decimal) -> Decimal {
    let value = ratio.apply(value).saturating_mul(dividend);
    // Rounding removes the error that the division leaves in the last digits.
    round(value, 18)
}

/// Cumulative factors of a security, oldest days first.
#[derive(Debug)]
pub struct CumulativeFactors(Vec<CumulativeFactor>);

impl CumulativeFactors {
    /// Computes the cumulative factors from the adjustment factors with an ex-date up to `as_of`. Later ex-dates do not
    /// affect prices yet. If `as_of` is `None`, all adjustment factors are used.
    pub fn new(factors: &[AdjustmentFactor], as_of: Option<NaiveDate>) -> Self {
        let happened = |factor: &&AdjustmentFactor| as_of.is_none_or(|as_of| factor.ex_date <= as_of);
        let mut factors: Vec<&AdjustmentFactor> = factors.iter().filter(happened).collect();
        factors.sort_by_key(|factor| factor.ex_date);
        let mut later = CumulativeFactor {
            before: i32::MAX,
            split: Ratio::ONE,
            price_only: Ratio::ONE,
            dividend: Decimal::ONE,
            shares: None,
        };
        let mut cumulative = vec![later.clone()];
        for factor in factors.into_iter().rev() {
            let split = factor.split.then(later.split);
            later = CumulativeFactor {
                before: day_number(factor.ex_date),
                split,
                price_only: factor.price_only.then(later.price_only),
                dividend: clamp_to_limit(later.dividend.checked_mul(factor.dividend_factor)),
                shares: small_shares(split),
            };
            cumulative.push(later.clone());
        }
        cumulative.reverse();
        Self(cumulative)
    }

    /// Index of the cumulative factor that applies to a day number.
    pub fn position(&self, day: i32) -> usize {
        self.0.partition_point(|step| step.before <= day).min(self.0.len() - 1)
    }

    /// Cumulative factor at an index.
    pub fn at(&self, position: usize) -> &CumulativeFactor {
        &self.0[position]
    }
}

/// Price in millionths. Prices in responses have six decimal places.
pub type Micros = i128;

const PLACES: u32 = 6;
const HALF: u64 = 1 << 63;
/// Smallest margin around a rounding boundary, in units of the lowest fraction bit. Prices within the margin are
/// computed with decimals.
const DOUBT: u64 = 1 << 27;

/// Cumulative factor as a fixed-point number. It converts raw prices with `scale` decimal places to one price basis.
#[derive(Debug, Clone, PartialEq)]
pub struct PriceMultiplier {
    /// Factor that converts a price's mantissa (the price as an integer) to millionths. The pair is the factor's
    /// integer part, and its fraction times 2^64. `None` if the factor does not fit this form.
    fixed: Option<(u64, u64)>,
    ratio: Ratio,
    dividend: Decimal,
    scale: u32,
}

impl PriceMultiplier {
    /// Computes the fixed-point factor. If the factor does not fit this form, [`Self::micros`] uses decimals.
    pub fn new(step: &CumulativeFactor, basis: PriceBasis, scale: u32) -> Self {
        let (ratio, dividend) = step.multipliers(basis);
        Self { fixed: fixed_point(ratio, dividend, scale), ratio, dividend, scale }
    }

    /// Converts a raw price to the multiplier's price basis, in millionths. `mantissa` is the raw price without its
    /// decimal point: the price 12.34 has the mantissa 1234 at scale 2.
    pub fn micros(&self, mantissa: i64) -> Micros {
        self.fast(mantissa)
            .unwrap_or_else(|| micros(exact(Decimal::new(mantissa, self.scale), self.ratio, self.dividend)))
    }

    fn fast(&self, mantissa: i64) -> Option<Micros> {
        let (whole, fraction) = self.fixed?;
        let magnitude = mantissa.unsigned_abs();
        let low = u128::from(magnitude) * u128::from(fraction);
        #[expect(clippy::cast_possible_truncation, reason = "the low half is wanted")]
        let fraction = low as u64;
        // The error of the product grows with the mantissa, and so does the margin.
        if fraction.abs_diff(HALF) <= magnitude.saturating_mul(2).saturating_add(DOUBT) {
            return None;
        }
        let high = u128::from(magnitude) * u128::from(whole) + (low >> 64) + u128::from(fraction > HALF);
        let micros = i128::from(u64::try_from(high).ok()?);
        Some(if mantissa < 0 { -micros } else { micros })
    }
}

/// Computes [`PriceMultiplier::fixed`]. The fraction is rounded down.
fn fixed_point(ratio: Ratio, dividend: Decimal, scale: u32) -> Option<(u64, u64)> {
    let Ratio { from, to } = ratio;
    let unit = Decimal::new(10i64.pow(PLACES), 0).checked_div(Decimal::from(10u64.checked_pow(scale)?))?;
    let factor = unit.checked_mul(from)?.checked_div(to)?.checked_mul(dividend)?;
    let whole = factor.trunc();
    let fraction = factor.checked_sub(whole)?.checked_mul(Decimal::from(1u128 << 64))?.trunc();
    let (whole, fraction) = (u64::try_from(whole).ok()?, u64::try_from(fraction).ok()?);
    // A factor of 2^32 or more does not fit: its 28 decimal digits are too few for a fraction of 64 bits.
    (whole >> 32 == 0).then_some((whole, fraction))
}

/// Converts a decimal to millionths, rounded half away from zero.
pub fn micros(value: Decimal) -> Micros {
    let mut rounded = round(value, PLACES);
    rounded.rescale(PLACES);
    rounded.mantissa()
}

#[cfg(test)]
mod tests {
    use crate::day::date_of;
    use proptest::prelude::*;

    use super::*;

    fn factor(day: i32, from: i64, to: i64, dividend_factor: Decimal) -> AdjustmentFactor {
        let split = Ratio { from: from.into(), to: to.into() };
        AdjustmentFactor {
            ex_date: date_of(day),
            split,
            dividend_factor,
            dividend: Decimal::ZERO,
            value: None,
            price_only: Ratio::ONE,
        }
    }

    #[test]
    fn what_has_not_happened_is_not_in_the_price() {
        let steps = CumulativeFactors::new(&[factor(100, 1, 2, Decimal::ONE)], Some(date_of(99)));
        assert_eq!(steps.at(steps.position(50)).factor(PriceBasis::SPLIT), Decimal::ONE);
    }

    #[test]
    fn steps_accumulate_backwards() {
        let steps = CumulativeFactors::new(
            &[factor(100, 1, 1, Decimal::new(99, 2)), factor(200, 1, 2, Decimal::new(5, 1))],
            None,
        );
        let found: Vec<_> =
            steps.0.iter().map(|step| (step.before, step.split.factor(), step.dividend)).collect();
        let half = Decimal::new(5, 1);
        assert_eq!(
            found,
            [(100, half, Decimal::new(495, 3)), (200, half, half), (i32::MAX, Decimal::ONE, Decimal::ONE)]
        );
    }

    #[test]
    fn shares_grow_with_splits() {
        let steps =
            CumulativeFactors::new(&[factor(200, 1, 4, Decimal::ONE), factor(100, 3, 2, Decimal::ONE)], None);
        assert_eq!(
            (
                steps.0.len(),
                steps.position(99),
                steps.position(100),
                steps.position(200),
                steps.position(i32::MAX)
            ),
            (3, 0, 1, 2, 2)
        );
        let shares = |position: usize, volume| steps.at(position).adjusted_volume(volume);
        // Three old shares become two new shares. Later, one share becomes four. In total, 100 shares become 266.67.
        assert_eq!((shares(0, 100), shares(1, 100), shares(2, 100)), (Some(267), Some(400), Some(100)));
        assert_eq!(shares(2, i64::MAX), Some(i64::MAX));
        assert_eq!(steps.at(0).factor(PriceBasis::SPLIT), Decimal::new(375, 3));
        assert_eq!(steps.at(1).exact(Decimal::new(1, 0), PriceBasis::ALL), Decimal::new(25, 2));
    }

    #[test]
    fn a_price_only_action_is_in_prices_and_not_in_volumes() {
        let spun = AdjustmentFactor {
            price_only: Ratio { from: Decimal::from(1000), to: Decimal::from(1281) },
            ..factor(100, 1, 2, Decimal::new(5, 1))
        };
        let steps = CumulativeFactors::new(&[spun], None);
        let served = |split, spin_off, dividend| {
            steps.at(0).exact(Decimal::new(2562, 0), PriceBasis { split, spin_off, dividend })
        };
        let prices = [
            served(false, false, false),
            served(true, false, false),
            served(false, true, false),
            served(false, false, true),
            served(true, true, false),
            served(true, true, true),
        ];
        assert_eq!(prices, [2562, 1281, 2000, 1281, 1000, 500].map(Decimal::from));
        assert_eq!(steps.at(0).adjusted_volume(100), Some(200));
    }

    proptest! {
        #[test]
        fn volumes_equal_their_decimal_results(
            (from, to) in (1i64..1_200_000, 1i64..1_200_000), volume in 0i64..100_000_000_000_000,
        ) {
            let ratio = Ratio { from: from.into(), to: to.into() };
            let steps = CumulativeFactors::new(&[factor(2, from, to, Decimal::ONE)], None);
            let exact = round(round(ratio.inverse().apply(volume.into()), 18), 0);
            prop_assert_eq!(steps.at(0).adjusted_volume(volume), i64::try_from(exact).ok());
        }
    }

    #[test]
    fn halves_of_shares_round_up_and_odd_ratios_are_exact() {
        let volume = |from, to, volume| {
            CumulativeFactors::new(&[factor(2, from, to, Decimal::ONE)], None).at(0).adjusted_volume(volume)
        };
        assert_eq!([volume(2, 1, 3), volume(3, 1, 4), volume(3, 1, 5)], [Some(2), Some(1), Some(2)]);
        // Larger results are clamped.
        let limit = Some(1_000_000_000_000_000_000);
        assert_eq!((volume(2, 1, i64::MAX), volume(1, 2, i64::MAX)), (limit, limit));
        let fraction = AdjustmentFactor {
            split: Ratio { from: Decimal::new(15, 1), to: Decimal::ONE },
            ..factor(2, 1, 1, Decimal::ONE)
        };
        assert_eq!(CumulativeFactors::new(&[fraction], None).at(0).adjusted_volume(10), Some(7));
    }
}

#[cfg(test)]
mod multiplier_tests {
    use proptest::prelude::*;

    use super::*;
    use crate::day::date_of;
    use crate::metrics::prices::adjustment::AdjustmentFactor;
    use crate::price::CumulativeFactors;

    fn factor(day: i32, from: i64, to: i64, dividend_factor: Decimal) -> AdjustmentFactor {
        let split = Ratio { from: from.into(), to: to.into() };
        AdjustmentFactor {
            ex_date: date_of(day),
            split,
            dividend_factor,
            dividend: Decimal::ZERO,
            value: None,
            price_only: Ratio::ONE,
        }
    }

    fn check(factors: &[AdjustmentFactor], day: i32, price: &str, basis: PriceBasis, expected: &str) {
        let steps = CumulativeFactors::new(factors, None);
        let step = steps.at(steps.position(day));
        let price: Decimal = price.parse().expect("a decimal");
        let mantissa = i64::try_from(price.mantissa()).expect("a small price");
        let found = PriceMultiplier::new(step, basis, price.scale()).micros(mantissa);
        assert_eq!(
            Decimal::from_i128_with_scale(found, 6).normalize(),
            expected.parse().expect("a decimal"),
            "{price} {day}"
        );
    }

    #[test]
    fn splits_and_dividends_lower_earlier_prices() {
        let one = Decimal::ONE;
        let apple = [factor(200, 1, 4, one), factor(100, 1, 7, one)];
        check(&apple, 99, "645.57", PriceBasis::SPLIT, "23.056071");
        check(&apple, 100, "100", PriceBasis::SPLIT, "25");
        check(&apple, 200, "100", PriceBasis::SPLIT, "100");
        check(&apple, 99, "645.57", PriceBasis::RAW, "645.57");
        let there_and_back = [factor(100, 1, 3, one), factor(200, 3, 1, one)];
        check(&there_and_back, 50, "100.01", PriceBasis::SPLIT, "100.01");
        let same_day = [factor(100, 1, 2, Decimal::new(99, 2))];
        check(&same_day, 99, "100", PriceBasis::ALL, "49.5");
        check(&same_day, 99, "100", PriceBasis::SPLIT, "50");
    }

    #[test]
    fn halves_round_away_from_zero() {
        check(&[factor(2, 1, 2, Decimal::ONE)], 1, "0.000001", PriceBasis::SPLIT, "0.000001");
        check(&[factor(2, 1, 2, Decimal::ONE)], 1, "0.000003", PriceBasis::SPLIT, "0.000002");
        check(&[], 1, "1.00000050", PriceBasis::RAW, "1.000001");
    }

    #[test]
    fn the_greatest_prices_are_rounded_as_their_exact_halves() {
        // The exact prices are 1,666.6666665 and 8,000,063,919,654.5390625. With a factor cut to 64 fraction bits, both
        // products are too small and would be rounded down.
        check(&[factor(2, 1, 6, Decimal::ONE)], 1, "9999.999999", PriceBasis::SPLIT, "1666.666667");
        let merged = [factor(2, 1_126_409, 1_408, Decimal::ONE)];
        check(&merged, 1, "9999999999", PriceBasis::SPLIT, "8000063919654.539063");
        // This factor is so large that a decimal has too few places for 64 fraction bits.
        let merged = [factor(2, 4_608_299, 384, Decimal::ONE)];
        check(&merged, 1, "999999999", PriceBasis::SPLIT, "12000778633832.554688");
    }

    #[test]
    fn nearly_every_price_goes_the_fast_way() {
        let paid = factor(100, 1, 7, Decimal::new(97, 2));
        let steps = CumulativeFactors::new(&[paid], None);
        for (scale, basis) in
            [(2, PriceBasis::SPLIT), (2, PriceBasis::ALL), (6, PriceBasis::SPLIT), (6, PriceBasis::RAW)]
        {
            let multiplier = PriceMultiplier::new(steps.at(0), basis, scale);
            for price in (1..=1000).map(|number| number * 9_999_991) {
                let exact = micros(steps.at(0).exact(Decimal::new(price, scale), basis));
                assert_eq!(multiplier.fast(price), Some(exact), "{price} {scale} {basis:?}");
                assert_eq!(multiplier.fast(-price), Some(-exact));
            }
        }
    }

    proptest! {
        #[test]
        fn the_fast_way_equals_the_exact_one(
            events in proptest::collection::vec((1i32..1000, 1i64..20, 1i64..20, 0u64..400_000_000_000), 0..12),
            day in 0i32..1000, mantissa in -10_000_000_000i64..10_000_000_000, scale in 0u32..=10,
        ) {
            let factors: Vec<AdjustmentFactor> = events.iter()
                .map(|(day, from, to, paid)| factor(*day, *from, *to, Decimal::ONE - Decimal::from(*paid) / Decimal::from(700_000_000_007u64)))
                .collect();
            let steps = CumulativeFactors::new(&factors, None);
            let step = steps.at(steps.position(day));
            for basis in [PriceBasis::RAW, PriceBasis::SPLIT, PriceBasis::ALL] {
                let exact = micros(step.exact(Decimal::new(mantissa, scale), basis));
                prop_assert_eq!(PriceMultiplier::new(step, basis, scale).micros(mantissa), exact);
            }
        }
    }

    #[test]
    fn prices_beyond_the_fast_way_are_exact() {
        // This test covers a price with 19 decimal places, factors above 2^32, and a negative price.
        check(&[], 1, "0.0000000000000000004", PriceBasis::RAW, "0");
        check(
            &[factor(2, 1_000_000_000_000, 1, Decimal::ONE)],
            1,
            "40.15",
            PriceBasis::SPLIT,
            "40150000000000",
        );
        check(
            &[factor(2, 1_000_000_000_000, 1, Decimal::ONE), factor(3, 1_000_000, 1, Decimal::ONE)],
            1,
            "0.5",
            PriceBasis::SPLIT,
            "500000000000000000",
        );
        check(&[factor(2, 1, 3, Decimal::ONE)], 1, "-1", PriceBasis::SPLIT, "-0.333333");
        check(&[factor(2, 1, 3, Decimal::ONE)], 1, "2", PriceBasis::SPLIT, "0.666667");
        check(&[factor(2, 3, 1, Decimal::new(5, 1))], 1, "2", PriceBasis::ALL, "3");
    }

    #[test]
    fn what_happened_on_the_day_itself_is_in_the_price() {
        let steps = CumulativeFactors::new(&[factor(100, 1, 2, Decimal::ONE)], Some(date_of(100)));
        assert_eq!(steps.at(steps.position(99)).factor(PriceBasis::SPLIT), Decimal::new(5, 1));
        assert_eq!(micros(Decimal::new(15, 7)), 2);
        assert_eq!(micros(Decimal::new(-15, 7)), -2);
        assert_eq!(micros(Decimal::new(14, 7)), 1);
    }
}
