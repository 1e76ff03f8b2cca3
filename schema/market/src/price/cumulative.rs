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
mod tests;

#[cfg(test)]
mod multiplier_tests;
