//! What whole columns of bars say at once. Signs are combined in place of comparisons, so that the compiler takes several values
//! at a time on any processor.

use crate::bars::{Bars, Column};

/// The bit that says that a number is below zero.
const SIGN: u64 = 1 << 63;
/// Of closes below this, no sum here has the sign's bit.
const ROOM: u64 = 1 << 61;

/// Whether no close is more than three eighths above its neighbour: then nothing looks like a wrong unit, or a split of at
/// least 3 for 2 even where it is 3 % off.
pub(super) fn is_calm(closes: &[i64]) -> bool {
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

/// Whether any bar is faulty: has a close that is not above zero, another value below it, or a high below its low.
pub(super) fn has_fault(bars: &Bars) -> bool {
    let not_above_zero = bars.close.iter().fold(0, |found, close| found | close | close.wrapping_sub(1)) < 0;
    not_above_zero
        || [&bars.open, &bars.high, &bars.low, &bars.volume]
            .into_iter()
            .any(|column| has_negative(column.known()))
        || has_crossed(&bars.high, &bars.low)
}

/// Whether any value is below zero; absent ones are not.
fn has_negative(column: &[i64]) -> bool {
    let found = column.iter().fold(0, |found, value| {
        let value = value.cast_unsigned();
        // Of a value with the sign, what stands beside the sign; of the absent one nothing does.
        found | ((value >> 63).wrapping_neg() & (value << 1))
    });
    found != 0
}

/// Whether any high is below its low, of which none is below zero.
fn has_crossed(highs: &Column, lows: &Column) -> bool {
    // Pairs from their ends on: before them one of the two is absent.
    let pairs = highs.known().iter().rev().zip(lows.known().iter().rev());
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
            let [open, high, low, volume] = [0, 1, 2, 4].map(|place| Column::from(column(place)));
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
            }
            prop_assert_eq!(has_fault(&Bars { open, high, low, close, volume, ..Bars::default() }), faulty);
        }
    }
}
