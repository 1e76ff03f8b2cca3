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
