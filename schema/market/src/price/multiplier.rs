//! Price multiplier: one cumulative factor as a fixed-point number with 64 fraction bits (R10, R11).
//!
//! Fixed-point multiplication is fast, but the factor has a small error. If the product is very close to a rounding
//! boundary, this error could change the rounded price. The price is then computed with decimals instead.
//!
//! Invariant: every result equals the result computed with decimals, rounded once, half away from zero.

use rust_decimal::Decimal;

use super::cumulative::{CumulativeFactor, PriceBasis, exact};
use crate::decimal::round;
use crate::metrics::prices::adjustment::Ratio;

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
