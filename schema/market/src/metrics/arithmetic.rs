//! Decimal arithmetic of the metrics (R9). A calculation divides as late as possible and rounds only its result. Roots
//! are computed by Newton's iteration.
//!
//! A quotient such as 2/3 is cut at 28 digits. A sum of quotients therefore has an error in its last digits. To remove
//! this error, [`remove_division_error`] rounds a value to 18 places before the value is compared, or rounded for
//! output. For example, 0.4999…9 becomes 0.5 again, and is then rounded away from zero. 18 places are enough, because
//! responses have at most 12.

use std::cmp::Ordering;

use rust_decimal::{Decimal, RoundingStrategy};

use crate::decimal::{ExactDecimal, PLACES_PERCENT};

pub(crate) const HUNDRED: Decimal = Decimal::ONE_HUNDRED;

/// Largest absolute value of a clamped result, 10^18. It exceeds every real price and amount.
const LIMIT: Decimal = Decimal::from_parts(0xA764_0000, 0x0DE0_B6B3, 0, false, 0);

/// Rounds to 18 places, which removes the division error of the last digits.
pub(crate) fn remove_division_error(value: Decimal) -> Decimal {
    value.round_dp_with_strategy(18, RoundingStrategy::MidpointAwayFromZero)
}

/// Rounds a percent or ratio for output: 4 places, half away from zero.
pub(crate) fn percent(value: Decimal) -> ExactDecimal {
    ExactDecimal::percent(remove_division_error(value))
}

/// Rounds a price or per-share amount for output: 6 places, half away from zero.
pub(crate) fn amount(value: Decimal) -> ExactDecimal {
    ExactDecimal::amount(remove_division_error(value))
}

/// Rounds a factor for output: 12 places, half away from zero.
pub(crate) fn factor(value: Decimal) -> ExactDecimal {
    ExactDecimal::factor(remove_division_error(value))
}

/// The value if it is positive, for use as a denominator; `None` otherwise.
pub(crate) fn keep_positive(value: Option<Decimal>) -> Option<Decimal> {
    value.filter(|value| *value > Decimal::ZERO)
}

/// `a / b`; `None` if `b` is zero or the result overflows.
pub(crate) fn quotient(a: Decimal, b: Decimal) -> Option<Decimal> {
    a.checked_div(b)
}

/// `a / b` in percent; `None` if `b` is zero or the result overflows.
pub(crate) fn percent_of(a: Decimal, b: Decimal) -> Option<Decimal> {
    quotient(a, b)?.checked_mul(HUNDRED)
}

pub(crate) fn percent_to_fraction(percent: Decimal) -> Decimal {
    percent * Decimal::new(1, 2)
}

/// `a / b` in percent, rounded to 4 decimal places for output. The result is exact unless the calculation exceeds 128
/// bits.
pub(crate) fn exact_percent(a: Decimal, b: Decimal) -> Option<ExactDecimal> {
    rounded_quotient(a, b).or_else(|| percent_of(a, b).map(percent))
}

/// `100 a / b` rounded to 4 decimal places, half away from zero. `None` if `b` is 0 or the calculation exceeds 128
/// bits.
fn rounded_quotient(a: Decimal, b: Decimal) -> Option<ExactDecimal> {
    let shift = i64::from(PLACES_PERCENT) + 2 + i64::from(b.scale()) - i64::from(a.scale());
    let power = 10i128.checked_pow(u32::try_from(shift.abs()).ok()?)?;
    let (up, down) = if shift >= 0 { (power, 1) } else { (1, power) };
    let (numerator, denominator) = (a.mantissa().checked_mul(up)?, b.mantissa().checked_mul(down)?);
    if denominator == 0 {
        return None;
    }
    let negative = numerator.is_negative() != denominator.is_negative();
    let (numerator, denominator) = (numerator.checked_abs()?, denominator.checked_abs()?);
    let rounded = numerator.checked_add(denominator / 2)? / denominator;
    let signed = if negative { -rounded } else { rounded };
    Decimal::try_from_i128_with_scale(signed, PLACES_PERCENT).ok().map(ExactDecimal::from)
}

/// `new / old - 1` in percent.
pub(crate) fn change_percent(new: Decimal, old: Decimal) -> Option<Decimal> {
    percent_of(new.checked_sub(old)?, old)
}

/// Clamps a result to ±[`LIMIT`]. `None` means an overflow and becomes [`LIMIT`].
pub(crate) fn clamp_to_limit(value: Option<Decimal>) -> Decimal {
    value.map_or(LIMIT, |value| value.clamp(-LIMIT, LIMIT))
}

/// Rounds to an integer, half away from zero; `None` beyond 64 bits.
pub(crate) fn round_to_integer(value: Decimal) -> Option<i64> {
    i64::try_from(
        remove_division_error(value).round_dp_with_strategy(0, RoundingStrategy::MidpointAwayFromZero),
    )
    .ok()
}

/// Mean of the values; `None` without values.
pub(crate) fn mean(values: &[Decimal]) -> Option<Decimal> {
    let sum = values.iter().try_fold(Decimal::ZERO, |sum, value| sum.checked_add(*value))?;
    quotient(sum, Decimal::from(values.len()))
}

/// Median of the values; `None` without values. For an even number of values it is the mean of the two in the middle.
pub(crate) fn median(mut values: Vec<Decimal>) -> Option<Decimal> {
    values.sort_unstable();
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 { Some(upper) } else { mean(&[values[middle - 1], upper]) }
}

/// True if the larger of the positive decimals `a` and `b` is at most `factor` times the smaller.
pub(crate) fn within_factor(a: Decimal, b: Decimal, factor: Decimal) -> bool {
    remove_division_error(a.max(b)) <= remove_division_error(a.min(b).saturating_mul(factor))
}

/// Positive `n`-th root, precise to at least 20 places. `None` if `value` is not positive or `n` is 0.
pub(crate) fn root(value: Decimal, n: u32) -> Option<Decimal> {
    if value <= Decimal::ZERO || n == 0 {
        return None;
    }
    if n == 1 {
        return Some(value);
    }
    match value.cmp(&Decimal::ONE) {
        Ordering::Less => quotient(Decimal::ONE, root(quotient(Decimal::ONE, value)?, n)?).map(settle_root),
        Ordering::Equal => Some(value),
        Ordering::Greater => newton(value, n).map(settle_root),
    }
}

/// Root of a `value` above 1, by Newton's iteration. The iteration must start at or above the root.
fn newton(value: Decimal, n: u32) -> Option<Decimal> {
    let degree = Decimal::from(n);
    let mut estimate = Decimal::TWO;
    while power(estimate, n).is_some_and(|p| p < value) {
        estimate = estimate.checked_mul(Decimal::TWO)?;
    }
    // Both starting values are at or above the root (Bernoulli's inequality). The smaller one is nearer.
    let bernoulli = quotient(value - Decimal::ONE, degree)? + Decimal::ONE;
    estimate = estimate.min(bernoulli);
    for _ in 0..200 {
        let slope = power(estimate, n - 1)?;
        let next = quotient(
            estimate.checked_mul(degree - Decimal::ONE)?.checked_add(quotient(value, slope)?)?,
            degree,
        )?;
        if next >= estimate {
            return Some(estimate);
        }
        estimate = next;
    }
    Some(estimate)
}

pub(crate) fn power(base: Decimal, n: u32) -> Option<Decimal> {
    (0..n).try_fold(Decimal::ONE, |product, _| product.checked_mul(base))
}

fn settle_root(value: Decimal) -> Decimal {
    value.round_dp_with_strategy(20, RoundingStrategy::MidpointAwayFromZero).normalize()
}

/// Converts a number of events or securities to `i32`.
#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "2^31 of them fit no memory")]
pub(crate) fn length_to_i32(length: usize) -> i32 {
    debug_assert!(i32::try_from(length).is_ok(), "{length} of a security's events");
    length as i32
}

/// Parses a literal as an exact decimal at compile time. The literal consists of digits, underscores and at most one
/// decimal point.
pub(crate) const fn exact(text: &str) -> Decimal {
    let bytes = text.as_bytes();
    let (mut digits, mut scale, mut in_fraction, mut place) = (0u64, 0, false, 0);
    while place < bytes.len() {
        match bytes[place] {
            b'.' => in_fraction = true,
            b'_' => {}
            digit => {
                digits = 10 * digits + (digit - b'0') as u64;
                scale += in_fraction as u32;
            }
        }
        place += 1;
    }
    Decimal::from_parts(digits as u32, (digits >> 32) as u32, 0, false, scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_of_powers_are_exact() {
        for (value, n, expected) in [
            (dec!(1.61051), 5, dec!(1.1)),
            (dec!(4), 2, dec!(2)),
            (dec!(0.000001), 3, dec!(0.01)),
            (dec!(1000000), 10, dec!(3.98107170553497250770)),
            (dec!(2), 2, dec!(1.41421356237309504880)),
            (dec!(0.5), 10, dec!(0.93303299153680741598)),
            // The values are 0.013^9 and 0.0005^7.
            (dec!(0.000000000000000010604499373), 9, dec!(0.013)),
            (dec!(0.0000000000000000000000078125), 7, dec!(0.0005)),
        ] {
            assert_eq!(root(value, n), Some(expected.normalize()), "{value}^(1/{n})");
        }
        assert_eq!(root(dec!(0), 2), None);
        assert_eq!(root(dec!(-1), 3), None);
    }

    #[test]
    fn a_third_three_times_is_one_again() {
        let third = Decimal::ONE / dec!(3);
        assert_eq!(percent(third + third + third), ExactDecimal::from(Decimal::ONE));
        assert_eq!(percent(dec!(1.23445)).0, dec!(1.2345));
        assert_eq!(percent(dec!(-1.23445)).0, dec!(-1.2345));
    }

    #[test]
    fn medians() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![dec!(3), dec!(1), dec!(2)]), Some(dec!(2)));
        assert_eq!(median(vec![dec!(5), dec!(2), dec!(3), dec!(4)]), Some(dec!(3.5)));
        assert_eq!(median(vec![dec!(5), dec!(2)]), Some(dec!(3.5)));
        assert_eq!(median(vec![dec!(5), dec!(2), dec!(9), dec!(4), dec!(1)]), Some(dec!(4)));
    }

    #[test]
    fn quotients_in_whole_numbers_round_as_the_others_do() {
        for (a, b) in [
            (dec!(1.23445), dec!(100)),
            (dec!(-1.23445), dec!(100)),
            (dec!(2), dec!(3)),
            (dec!(0.48), dec!(20.05)),
            (dec!(0), dec!(7)),
            (dec!(1), dec!(-3)),
            (dec!(0.0000000001), dec!(9999999999)),
            (dec!(9999999999.9999999999), dec!(0.0000000001)),
        ] {
            assert_eq!(exact_percent(a, b), percent_of(a, b).map(percent), "{a} / {b}");
        }
        assert_eq!(exact_percent(dec!(1), dec!(0)), None);
    }

    #[test]
    fn impossible_sizes_stop_at_the_limit() {
        assert_eq!(clamp_to_limit(Decimal::MAX.checked_mul(dec!(2))), LIMIT);
        assert_eq!(LIMIT, dec!(1000000000000000000));
    }

    #[test]
    fn quotients_are_rounded_once() {
        for (a, b, expected) in [
            (dec!(2), dec!(3), dec!(66.6667)),
            (dec!(-2), dec!(3), dec!(-66.6667)),
            (dec!(2), dec!(-3), dec!(-66.6667)),
            (dec!(-2), dec!(-3), dec!(66.6667)),
            (dec!(123.4567890123), dec!(1), dec!(12345.6789)),
            (dec!(1.23456549), dec!(1), dec!(123.4565)),
            (dec!(1.2345655), dec!(1), dec!(123.4566)),
            (dec!(7), dec!(0.35), dec!(2000)),
            // The quotient 0.0000499999… percent is slightly below a half and is rounded down.
            (dec!(1000), dec!(2000000000.0000000001), dec!(0)),
            (dec!(1000), dec!(2000000000), dec!(0.0001)),
            (dec!(1000), dec!(1999999999.9999999999), dec!(0.0001)),
        ] {
            assert_eq!(exact_percent(a, b), Some(ExactDecimal::from(expected)), "{a} / {b}");
        }
    }

    #[test]
    fn the_last_digits_of_a_quotient_are_no_ones() {
        assert_eq!(remove_division_error(dec!(0.0000000000000000014)), dec!(0.000000000000000001));
        assert_eq!(remove_division_error(dec!(0.0000000000000000015)), dec!(0.000000000000000002));
        assert_eq!(remove_division_error(Decimal::ONE / dec!(3) * dec!(3)), Decimal::ONE);
        assert_eq!(remove_division_error(dec!(0.000000000000000001)), dec!(0.000000000000000001));
        assert_eq!(amount(dec!(1.2345674999999999999999999)), ExactDecimal::from(dec!(1.234568)));
        assert_eq!(factor(dec!(0.9999999999995)), ExactDecimal::from(dec!(1)));
    }

    #[test]
    fn small_sums() {
        assert_eq!(
            [dec!(0.01), dec!(0), dec!(-0.01)].map(|value| keep_positive(Some(value))),
            [Some(dec!(0.01)), None, None]
        );
        assert_eq!((quotient(dec!(1), dec!(0)), quotient(dec!(3), dec!(4))), (None, Some(dec!(0.75))));
        assert_eq!(change_percent(dec!(0.75), dec!(0.5)), Some(dec!(50)));
        assert_eq!(change_percent(dec!(0.25), dec!(0.5)), Some(dec!(-50)));
        assert_eq!(change_percent(dec!(0.25), dec!(0)), None);
        assert_eq!((mean(&[]), mean(&[dec!(1), dec!(2), dec!(6)])), (None, Some(dec!(3))));
        assert_eq!(
            (round_to_integer(dec!(2.5)), round_to_integer(dec!(-2.5)), round_to_integer(dec!(2.4999))),
            (Some(3), Some(-3), Some(2))
        );
        assert_eq!(round_to_integer(dec!(99999999999999999999)), None);
        assert_eq!(
            (
                clamp_to_limit(Some(dec!(-5))),
                clamp_to_limit(Some(LIMIT + LIMIT)),
                clamp_to_limit(Some(-LIMIT - LIMIT))
            ),
            (dec!(-5), LIMIT, -LIMIT)
        );
    }

    #[test]
    fn a_factor_between_amounts_has_no_direction() {
        let (a, b) = (dec!(0.30), dec!(0.20));
        assert!(within_factor(a, b, dec!(1.5)) && within_factor(b, a, dec!(1.5)));
        assert!(!within_factor(dec!(0.3001), b, dec!(1.5)) && !within_factor(b, dec!(0.3001), dec!(1.5)));
    }

    #[test]
    fn roots_of_one_and_first_roots() {
        assert_eq!((root(dec!(7.25), 1), root(dec!(0.25), 1)), (Some(dec!(7.25)), Some(dec!(0.25))));
        assert_eq!((root(dec!(1), 9), root(dec!(7), 0)), (Some(dec!(1)), None));
        assert_eq!((root(dec!(1024), 10), root(dec!(8), 3)), (Some(dec!(2)), Some(dec!(2))));
        assert_eq!(root(dec!(59049), 10), Some(dec!(3)));
        // The first root (n = 1) of a value is the value itself, with all its digits. The root of a power of two is
        // exact.
        let third = Decimal::ONE / dec!(3);
        assert_eq!(root(third, 1), Some(third));
        assert_eq!(root(Decimal::from(1u64 << 60), 60), Some(dec!(2)));
    }

    #[test]
    fn literals_are_exact() {
        assert_eq!(exact("0.05"), dec!(0.05));
        assert_eq!(exact("550"), dec!(550));
        assert_eq!(exact("1_000_000_000_000"), dec!(1000000000000));
    }
}
