//! Scans over whole price columns. They have no branches, so that the compiler vectorises them.
//!
//! Instead of comparing values, the scans combine their sign bits. Several values are then processed at a time on any
//! processor.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use crate::bars::{BarColumn, Bars};

const SIGN: u64 = 1 << 63;
/// Upper bound of closes. Below it, no sum in a scan reaches the sign bit.
const ROOM: u64 = 1 << 61;

/// True if no close is more than three eighths above a neighbouring close. Such a calm series contains no unit error.
/// It contains no split of 3 for 2 either, even with a deviation of 3 %.
pub(crate) fn is_calm(closes: &[i64]) -> bool {
    let pairs = closes.iter().zip(closes.get(1..).unwrap_or_default());
    if closes.iter().fold(0, |all, close| all | close.cast_unsigned()) >= ROOM {
        let most = |close: i64| close.saturating_add(close >> 2).saturating_add(close >> 3);
        return pairs.fold(true, |calm, (before, after)| {
            calm & (*after <= most(*before)) & (*before <= most(*after))
        });
    }
    let most = |close: u64| close + (close >> 2) + (close >> 3);
    let above = pairs.fold(0, |above, (before, after)| {
        let (before, after) = (before.cast_unsigned(), after.cast_unsigned());
        above | most(before).wrapping_sub(after) | most(after).wrapping_sub(before)
    });
    above & SIGN == 0
}

/// True if a close may be more than `factor` times a neighbouring close. Closes must be positive. The fraction of the
/// factor is ignored, so the scan may also report slightly smaller moves.
pub(crate) fn has_leap(closes: &[i64], factor: Decimal) -> bool {
    let times = factor.trunc().to_u64().unwrap_or(1).max(1);
    let pairs = closes.iter().zip(closes.get(1..).unwrap_or_default());
    if closes.iter().fold(0, |all, close| all | close.cast_unsigned()) >= SIGN / (2 * times) {
        return pairs.fold(false, |leap, (before, after)| {
            let (before, after) = (before.cast_unsigned(), after.cast_unsigned());
            leap | (after > before.saturating_mul(times)) | (before > after.saturating_mul(times))
        });
    }
    let above = pairs.fold(0, |above, (before, after)| {
        let (before, after) = (before.cast_unsigned(), after.cast_unsigned());
        above | (before * times).wrapping_sub(after) | (after * times).wrapping_sub(before)
    });
    above & SIGN != 0
}

/// True if any bar has a close of 0 or less, another negative value, or a high below its low.
pub(crate) fn has_fault(bars: &Bars) -> bool {
    let not_above_zero = bars.close.iter().fold(0, |found, close| found | close | close.wrapping_sub(1)) < 0;
    not_above_zero
        || [&bars.open, &bars.high, &bars.low, &bars.volume]
            .into_iter()
            .any(|column| has_negative(column.values_from_first_present()))
        || has_crossed(&bars.high, &bars.low)
}

/// True if any value is negative. Absent values are not negative.
fn has_negative(column: &[i64]) -> bool {
    let found = column.iter().fold(0, |found, value| {
        let value = value.cast_unsigned();
        // `MISSING` is the sign bit alone. Every other negative value has a further bit, which the shift keeps.
        found | ((value >> 63).wrapping_neg() & (value << 1))
    });
    found != 0
}

/// True if any high is below its low. No value may be negative.
fn has_crossed(highs: &BarColumn, lows: &BarColumn) -> bool {
    // Values are paired from the end. Before the start of the shorter column, one value of each pair is absent.
    let pairs =
        highs.values_from_first_present().iter().rev().zip(lows.values_from_first_present().iter().rev());
    pairs.fold(0, |found, (high, low)| found | (high.wrapping_sub(*low) & !high & !low)) < 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bars::MISSING;

    fn value() -> impl Strategy<Value = i64> {
        prop_oneof![8 => 90i64..140, 1 => -2i64..2, 1 => Just(MISSING), 1 => any::<i64>()]
    }

    proptest! {
        #[test]
        fn columns_are_judged_as_their_bars_are(
            rows in prop::collection::vec([value(), value(), value(), value(), value()], 0..6)
        ) {
            let column = |place: usize| rows.iter().map(|row| row[place]).collect::<Vec<i64>>();
            let [open, high, low, volume] = [0, 1, 2, 4].map(|place| BarColumn::from(column(place)));
            let close = column(3);
            let negative = |value: i64| value < 0 && value != MISSING;
            let faulty = rows.iter().any(|[open, high, low, close, volume]| {
                let crossed = *high != MISSING && *low != MISSING && high < low;
                *close <= 0 || crossed || [open, high, low, volume].into_iter().any(|value| negative(*value))
            });
            let leaps = close.windows(2).any(|pair| {
                let (small, large) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
                i128::from(large) > i128::from(small) + i128::from(small >> 2) + i128::from(small >> 3)
            });
            if close.iter().all(|close| *close > 0) {
                prop_assert_eq!(is_calm(&close), !leaps);
                for factor in [3u32, 7] {
                    let leaps = close.windows(2).any(|pair| {
                        let (small, large) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
                        i128::from(large) > i128::from(small) * i128::from(factor)
                    });
                    prop_assert_eq!(has_leap(&close, Decimal::from(factor)), leaps);
                }
            }
            prop_assert_eq!(has_fault(&Bars { open, high, low, close, volume, ..Bars::default() }), faulty);
        }
    }
}
