//! Cumulative adjustment factors: raw prices to adjusted prices, fast and exact (R10, R11).
//!
//! A price is multiplied by a fixed-point factor with 64 fraction bits. Near a rounding boundary, the error of the
//! factor could change the rounded price. Exact decimal arithmetic is then used.
//!
//! Invariant: every result equals the decimal result, rounded once, half away from zero.

use crate::day::day_number;
use crate::decimal::round;
use crate::metrics::prices::adjustment::{AdjustmentFactor, AdjustmentStep, Ratio, cumulative_steps};
use chrono::NaiveDate;
use rust_decimal::Decimal;

/// Price in millionths. Prices in responses have six places.
pub type Micros = i128;

const PLACES: u32 = 6;
const HALF: u64 = 1 << 63;
/// Minimum distance from a rounding boundary for fixed-point arithmetic, in units of 2^-64 millionths. The error of the
/// price is added to it.
const DOUBT: u128 = 1 << 27;

/// Basis of prices in a response: the adjustments that are applied to earlier prices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PriceBasis {
    /// True for adjustment by changes of the share count. Volumes are then on today's share basis.
    pub split: bool,
    /// True for adjustment by price-only actions, such as spin-offs with a ratio (R35).
    pub spin_off: bool,
    /// True for adjustment by cash dividends and the values of spin-offs.
    pub dividend: bool,
}

impl PriceBasis {
    /// Prices as traded.
    pub const RAW: Self = Self { split: false, spin_off: false, dividend: false };
    /// Prices that are comparable along a chart: adjusted for splits and price-only actions.
    pub const SPLIT: Self = Self { split: true, spin_off: true, dividend: false };
    /// Prices with all adjustments.
    pub const ALL: Self = Self { split: true, spin_off: true, dividend: true };

    /// Basis with the adjustments of both bases.
    pub fn and(self, other: Self) -> Self {
        Self {
            split: self.split || other.split,
            spin_off: self.spin_off || other.spin_off,
            dividend: self.dividend || other.dividend,
        }
    }
}

/// Cumulative factor of consecutive days: the product of all adjustments after these days.
#[derive(Debug, Clone)]
pub struct CumulativeFactor {
    /// First day to which the factor no longer applies.
    before: i32,
    split: Ratio,
    price_only: Ratio,
    dividend: Decimal,
}

impl CumulativeFactor {
    /// Converts a raw value to a basis, rounded to 18 places only.
    pub fn exact(&self, value: Decimal, basis: PriceBasis) -> Decimal {
        let (ratio, dividend) = self.multipliers(basis);
        let value = ratio.apply(value).saturating_mul(dividend);
        // Removes the division error of the last digits.
        round(value, 18)
    }

    /// Ratio and dividend factor of a basis.
    fn multipliers(&self, basis: PriceBasis) -> (Ratio, Decimal) {
        let ratio = if basis.split { self.split } else { Ratio::ONE };
        let ratio = if basis.spin_off { ratio.then(self.price_only) } else { ratio };
        (ratio, if basis.dividend { self.dividend } else { Decimal::ONE })
    }

    /// Factor rounded to twelve places.
    pub fn factor(&self, basis: PriceBasis) -> Decimal {
        round(self.exact(Decimal::ONE, basis), 12)
    }

    /// Converts a volume to today's share basis; `None` beyond 64 bits.
    pub fn adjusted_volume(&self, volume: i64) -> Option<i64> {
        if self.split.is_one() {
            return Some(volume);
        }
        let shares = round(round(self.split.inverse().apply(volume.into()), 18), 0);
        i64::try_from(shares).ok()
    }
}

/// Cumulative factors of a security, by day.
#[derive(Debug)]
pub struct CumulativeFactors(Vec<CumulativeFactor>);

impl CumulativeFactors {
    /// Computes the cumulative products of the factors up to the as-of date. Later factors do not affect prices yet.
    pub fn new(factors: &[AdjustmentFactor], as_of: Option<NaiveDate>) -> Self {
        let happened = |factor: &&AdjustmentFactor| as_of.is_none_or(|as_of| factor.ex_date <= as_of);
        let mut factors: Vec<AdjustmentFactor> = factors.iter().filter(happened).cloned().collect();
        factors.sort_by_key(|factor| factor.ex_date);
        let step = |step: AdjustmentStep| CumulativeFactor {
            before: day_number(step.before),
            split: step.split,
            price_only: step.price_only,
            dividend: step.dividend,
        };
        let (split, price_only) = (Ratio::ONE, Ratio::ONE);
        let none = CumulativeFactor { before: i32::MAX, split, price_only, dividend: Decimal::ONE };
        Self(cumulative_steps(&factors).into_iter().map(step).chain([none]).collect())
    }

    /// Index of the cumulative factor of a day.
    pub fn position(&self, day: i32) -> usize {
        self.0.partition_point(|step| step.before <= day).min(self.0.len() - 1)
    }

    /// Cumulative factor at an index.
    pub fn at(&self, position: usize) -> &CumulativeFactor {
        &self.0[position]
    }

    /// Number of factors, at least one.
    #[expect(clippy::len_without_is_empty, reason = "there is always the factor of today")]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// One cumulative factor as a fixed-point number, for one basis and for prices of one scale.
#[derive(Debug, Clone)]
pub struct PriceMultiplier {
    /// Millionths per unit of the price's last place, times 2^64; `None` if the number does not fit.
    fixed: Option<u128>,
    scale: u32,
    basis: PriceBasis,
}

impl PriceMultiplier {
    /// Computes the fixed-point factor. If it does not fit, [`Self::micros`] uses exact arithmetic.
    pub fn new(step: &CumulativeFactor, basis: PriceBasis, scale: u32) -> Self {
        Self { fixed: fixed_point(step, basis, scale), scale, basis }
    }

    /// Converts a raw price to millionths on the basis. `mantissa` is the price as an integer at the multiplier's
    /// scale.
    pub fn micros(&self, step: &CumulativeFactor, mantissa: i64) -> Micros {
        self.fast(mantissa)
            .unwrap_or_else(|| micros(step.exact(Decimal::new(mantissa, self.scale), self.basis)))
    }

    fn fast(&self, mantissa: i64) -> Option<Micros> {
        let magnitude = u128::from(mantissa.unsigned_abs());
        let product = magnitude.checked_mul(self.fixed?)?;
        #[expect(clippy::cast_possible_truncation, reason = "the low half is wanted")]
        let fraction = product as u64;
        if u128::from(fraction.abs_diff(HALF)) <= DOUBT + 2 * magnitude {
            return None;
        }
        let whole = i128::try_from(product >> 64).ok()? + i128::from(fraction > HALF);
        Some(if mantissa < 0 { -whole } else { whole })
    }
}

/// Factor in millionths per unit of the price's last place, with 64 fraction bits, rounded down.
fn fixed_point(step: &CumulativeFactor, basis: PriceBasis, scale: u32) -> Option<u128> {
    let (Ratio { from, to }, dividend) = step.multipliers(basis);
    let unit = Decimal::new(10i64.pow(PLACES), 0).checked_div(Decimal::from(10u64.checked_pow(scale)?))?;
    let factor = unit.checked_mul(from)?.checked_div(to)?.checked_mul(dividend)?;
    let whole = factor.trunc();
    let fraction = factor.checked_sub(whole)?.checked_mul(Decimal::from(1u128 << 64))?.trunc();
    let (whole, fraction) = (u128::try_from(whole).ok()?, u128::try_from(fraction).ok()?);
    // From 2^32 on, the 28 digits of a quotient are too few for a 64-bit fraction.
    if whole >> 32 == 0 { Some((whole << 64) + fraction) } else { None }
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

    fn check(factors: &[AdjustmentFactor], day: i32, price: &str, basis: PriceBasis, expected: &str) {
        let steps = CumulativeFactors::new(factors, None);
        let step = steps.at(steps.position(day));
        let price: Decimal = price.parse().expect("a decimal");
        let mantissa = i64::try_from(price.mantissa()).expect("a small price");
        let found = PriceMultiplier::new(step, basis, price.scale()).micros(step, mantissa);
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
        // 1,666.6666665 and 8,000,063,919,654.5390625: with a factor cut to 64 bits both fall below the half.
        check(&[factor(2, 1, 6, Decimal::ONE)], 1, "9999.999999", PriceBasis::SPLIT, "1666.666667");
        let merged = [factor(2, 1_126_409, 1_408, Decimal::ONE)];
        check(&merged, 1, "9999999999", PriceBasis::SPLIT, "8000063919654.539063");
        // For so large a factor, a decimal has too few places for 64 fraction bits.
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

    #[test]
    fn what_has_not_happened_is_not_in_the_price() {
        let steps = CumulativeFactors::new(&[factor(100, 1, 2, Decimal::ONE)], Some(date_of(99)));
        assert_eq!(steps.at(steps.position(50)).factor(PriceBasis::SPLIT), Decimal::ONE);
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
                prop_assert_eq!(PriceMultiplier::new(step, basis, scale).micros(step, mantissa), exact);
            }
        }
    }

    #[test]
    fn shares_grow_with_splits() {
        let steps =
            CumulativeFactors::new(&[factor(200, 1, 4, Decimal::ONE), factor(100, 3, 2, Decimal::ONE)], None);
        assert_eq!(
            (
                steps.len(),
                steps.position(99),
                steps.position(100),
                steps.position(200),
                steps.position(i32::MAX)
            ),
            (3, 0, 1, 2, 2)
        );
        let shares = |position: usize, volume| steps.at(position).adjusted_volume(volume);
        // Three old shares become two new shares, and later one becomes four: 100 shares are 266.67.
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

    #[test]
    fn prices_beyond_the_fast_way_are_exact() {
        // More places than a fixed point can have, a factor above 2^63, and a negative price.
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
