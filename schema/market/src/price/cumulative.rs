//! Cumulative adjustment factors, which convert raw prices and volumes to adjusted prices and volumes (R10, R11).
//!
//! Invariant: a volume computed with integers equals the volume computed with decimals. Both are rounded half away from
//! zero.

use crate::day::day_number;
use crate::decimal::round;
use crate::metrics::arithmetic::clamp_to_limit;
use crate::metrics::prices::adjustment::{AdjustmentFactor, Ratio};
use chrono::NaiveDate;
use rust_decimal::Decimal;

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
