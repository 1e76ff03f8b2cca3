//! Fast searches in whole price columns. Their loops have no branches, so that the compiler can vectorize them.
//!
//! A loop does not test each value. It computes a sign bit from each value, combines all sign bits, and tests the
//! result once.

use crate::bars::{BarColumn, Bars};

const SIGN: u64 = 1 << 63;
/// The fast search of a block is used only if all its closes are below this limit. With larger closes, a sum in the
/// search could reach the sign bit.
const ROOM: u64 = 1 << 61;

/// Number of closes in a block. Most blocks contain no large move (see [`find_large_moves`]), so their closes need not
/// be compared one by one.
const BLOCK: usize = 256;

/// Indexes of the closes that differ from the previous close by more than a factor of 1.375. All closes must be
/// positive.
pub(crate) fn find_large_moves(closes: &[i64]) -> Vec<usize> {
    // The searches for wrong price levels (R36) and missing splits (R30) check only these moves. Their factors are
    // larger.
    let mut moves = Vec::new();
    for start in (1..closes.len()).step_by(BLOCK) {
        let end = closes.len().min(start + BLOCK);
        if !is_calm(&closes[start - 1..end]) {
            moves.extend((start..end).filter(|index| is_large_move(closes[index - 1], closes[*index])));
        }
    }
    moves
}

fn is_large_move(before: i64, after: i64) -> bool {
    let most = |close: i64| close.saturating_add(close >> 2).saturating_add(close >> 3);
    after > most(before) || before > most(after)
}

/// True if a block contains no large move.
fn is_calm(closes: &[i64]) -> bool {
    let pairs = closes.iter().zip(closes.get(1..).unwrap_or_default());
    if closes.iter().fold(0, |all, close| all | close.cast_unsigned()) >= ROOM {
        return pairs.fold(true, |calm, (before, after)| calm & !is_large_move(*before, *after));
    }
    let most = |close: u64| close + (close >> 2) + (close >> 3);
    let above = pairs.fold(0, |above, (before, after)| {
        let (before, after) = (before.cast_unsigned(), after.cast_unsigned());
        above | most(before).wrapping_sub(after) | most(after).wrapping_sub(before)
    });
    above & SIGN == 0
}

/// True if any bar is faulty: its close is not positive, another value is negative, or the high is below the low.
pub(crate) fn has_fault(bars: &Bars) -> bool {
    let not_above_zero = bars.close.iter().fold(0, |found, close| found | close | close.wrapping_sub(1)) < 0;
    not_above_zero
        || [&bars.open, &bars.high, &bars.low, &bars.volume]
            .into_iter()
            .any(|column| has_negative(column.values_from_first_present()))
        || has_crossed(&bars.high, &bars.low)
}

/// True if any value is negative. An absent value, stored as the negative number `MISSING`, does not count.
fn has_negative(column: &[i64]) -> bool {
    // If a value is negative, the value minus one is negative too. `MISSING` is the only exception: it is the smallest
    // value, so the subtraction wraps around.
    column.iter().fold(0, |found, value| found | (value & value.wrapping_sub(1))) < 0
}

/// True if any high is below the low of the same bar. The caller must ensure that no value is negative, except absent
/// values (`MISSING`).
fn has_crossed(highs: &BarColumn, lows: &BarColumn) -> bool {
    // Highs and lows are paired from the newest bar back. The pairs end where one of the columns has no earlier value.
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
            if close.iter().all(|close| *close > 0) {
                let is_large = |index: &usize| {
                    let (before, after) = (close[index - 1], close[*index]);
                    let (small, large) = (before.min(after), before.max(after));
                    i128::from(large) > i128::from(small) + i128::from(small >> 2) + i128::from(small >> 3)
                };
                let moves: Vec<usize> = (1..close.len()).filter(is_large).collect();
                prop_assert_eq!(find_large_moves(&close), moves);
            }
            prop_assert_eq!(has_fault(&Bars { open, high, low, close, volume, ..Bars::default() }), faulty);
        }
    }
}
