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
    check(&[factor(2, 1_000_000_000_000, 1, Decimal::ONE)], 1, "40.15", PriceBasis::SPLIT, "40150000000000");
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
