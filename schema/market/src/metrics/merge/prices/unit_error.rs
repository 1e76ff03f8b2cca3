//! Detection of bars in a wrong unit: 100 times their neighbours or a hundredth of them, within 5 % (R30).

/// True if any close is more than 64 times its neighbour, as every unit error is. Closes must be positive.
pub(crate) fn has_leap(closes: &[i64]) -> bool {
    let pairs = closes.iter().zip(closes.get(1..).unwrap_or_default());
    let leaps = |small: i64, large: i64| (large.saturating_sub(1) >> 6) >= small;
    pairs.fold(false, |leap, (before, after)| leap | leaps(*before, *after) | leaps(*after, *before))
}

/// True if the close is 95 to 105 times both neighbours. The same holds for a hundredth, if neither neighbour
/// is itself an error.
pub(crate) fn is_unit_error(closes: &[i64], index: usize) -> bool {
    is_hundredfold_spike(closes, index)
        || (is_hundredfold_dip(closes, index)
            && !is_hundredfold_spike(closes, index - 1)
            && !is_hundredfold_spike(closes, index + 1))
}

fn is_hundredfold_spike(closes: &[i64], index: usize) -> bool {
    neighbours(closes, index)
        .is_some_and(|(before, close, after)| hundredfold(close, before) && hundredfold(close, after))
}

fn is_hundredfold_dip(closes: &[i64], index: usize) -> bool {
    neighbours(closes, index)
        .is_some_and(|(before, close, after)| hundredfold(before, close) && hundredfold(after, close))
}

/// Close with both neighbours; `None` for the first and the last bar.
fn neighbours(closes: &[i64], index: usize) -> Option<(i64, i64, i64)> {
    Some((*closes.get(index.checked_sub(1)?)?, *closes.get(index)?, *closes.get(index + 1)?))
}

/// Closes must be positive.
fn hundredfold(large: i64, small: i64) -> bool {
    let (large, small) = (i128::from(large), i128::from(small));
    small * 95 <= large && large <= small * 105
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leap_is_more_than_64_times_the_close_beside_it() {
        let (low, most, more) = (10_000, 640_000, 650_000);
        for closes in [[low, low, most], [most, low, low], [low, most, low], [most, low, most]] {
            assert!(!has_leap(&closes), "{closes:?}");
        }
        // Up at a listing's end, down at its beginning: either is one, and a wrong unit is both.
        for closes in [[low, low, more], [more, low, low], [low, more, low], [more, low, more]] {
            assert!(has_leap(&closes), "{closes:?}");
        }
        // Of whole dollars a close may be 1.
        assert!(has_leap(&[1, 65]) && has_leap(&[129, 2]) && !has_leap(&[1, 64]) && !has_leap(&[128, 2]));
        assert!(!has_leap(&[more]) && !has_leap(&[]));
    }
}
