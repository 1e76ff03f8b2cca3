//! Test of a split against the price (R36).
//!
//! The unexplained factor is the part of the price move that the split ratio does not explain. For example, if a split
//! of 2 for 1 should halve the price, but the price stays the same, the unexplained factor is 2. The price denies the
//! split if the logarithm of this factor is too large compared with the logarithm of the ratio.
//!
//! The logarithms are compared exactly by powers: ln a > p/q ln b if and only if a^q > b^p.

use rust_decimal::Decimal;

use super::adjustment::Ratio;
use crate::metrics::arithmetic::{power, quotient};

/// Number e to eight decimal places: the ratio with the natural logarithm 1.
pub(crate) const E: Decimal = Decimal::from_parts(271_828_183, 0, 0, false, 8);

/// Factor of the price change at a split, always at least 1. `None` for ratios below 3 for 2, because such a change is
/// not visible in a price.
pub(crate) fn detectable_factor(ratio: Ratio) -> Option<Decimal> {
    let (more, fewer) = (ratio.from.max(ratio.to), ratio.from.min(ratio.to));
    quotient(more, fewer).filter(|size| *size >= Decimal::new(15, 1))
}

/// True if the price denies a split: the logarithm of `rest` exceeds `share` percent of the logarithm of `ratio`.
///
/// `rest` is the unexplained factor, and 1 means a perfect fit. A ratio above `largest_ratio` is limited to it.
pub(crate) fn is_denied(rest: Decimal, ratio: Ratio, share: i64, largest_ratio: Decimal) -> bool {
    let Some(size) = quotient(ratio.from.max(ratio.to), ratio.from.min(ratio.to)) else { return false };
    let base = size.min(largest_ratio);
    let Some(rest) = (if rest < Decimal::ONE { quotient(Decimal::ONE, rest) } else { Some(rest) }) else {
        return true;
    };
    // Powers are exact: ln a > p/q ln b if and only if a^q > b^p.
    let (numerator, denominator) = lowest_share(share);
    match (power(rest, denominator), power(base, numerator)) {
        (Some(rest), Some(base)) => rest > base,
        // `None` means that a power has more than 28 digits. It exceeds every power that fits. If both powers have more
        // than 28 digits, their bases are compared.
        (None, Some(_)) => true,
        (Some(_), None) => false,
        (None, None) => rest >= base,
    }
}

/// Numerator and denominator of a percentage in lowest terms: 40 percent is 2/5.
fn lowest_share(percent: i64) -> (u32, u32) {
    let divisor = [20, 10, 5, 4, 2].into_iter().find(|divisor| percent % divisor == 0 && 100 % divisor == 0);
    let divisor = divisor.unwrap_or(1);
    (u32::try_from(percent / divisor).unwrap_or_default(), u32::try_from(100 / divisor).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(from: i64, to: i64) -> Ratio {
        Ratio { from: from.into(), to: to.into() }
    }

    #[test]
    fn a_rest_of_more_than_the_share_of_the_logarithm_denies_a_ratio() {
        let denied = |rest: Decimal, ratio, largest| is_denied(rest, ratio, 40, largest);
        let (one, none) = (E, Decimal::MAX);
        // 2^0.4 is 1.3195.
        for (rest, expected) in [
            (dec!(1), false),
            (dec!(1.319), false),
            (dec!(1.32), true),
            (dec!(0.758), false),
            (dec!(0.757), true),
        ] {
            assert_eq!(denied(rest, of(1, 2), one), expected, "{rest}");
            assert_eq!(denied(rest, of(2, 1), one), expected, "{rest}");
        }
        // For ratios of 2.718 and above, the limit is e^0.4: 1.4918.
        assert_eq!([dec!(1.491), dec!(1.492)].map(|rest| denied(rest, of(12, 1), one)), [false, true]);
        assert_eq!([dec!(2.7), dec!(2.71)].map(|rest| denied(rest, of(12, 1), none)), [false, true]);
        // Shares without a common divisor, and numbers beyond 28 digits.
        assert!(is_denied(dec!(22), of(1, 22), 83, none) && !is_denied(dec!(13), of(1, 22), 83, none));
        assert!(
            is_denied(dec!(999999), of(1, 2), 59, one) && !is_denied(dec!(1.01), of(1, 1_000_000), 59, none)
        );
    }
}
