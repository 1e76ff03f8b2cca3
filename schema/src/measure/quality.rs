//! Flags on prices that contradict splits (R30).
//!
//! `price_jump_without_split`: between sessions at most 7 days apart, closes in a ratio within 3 % of a known split ratio
//! (2, 3, 4, 5, 6, 8, 10, 15, 20, 25, 30, 40, 50, 100 or their inverse) and no split between them.
//! `split_not_in_price`: a split of at least 3 for 2 (or its inverse) over which the raw close moved less than half way,
//! on a ratio scale, to from/to. Both are only flags: prices and splits stay as they are.

use std::collections::BTreeSet;

use rust_decimal::Decimal;

use super::arithmetic::quotient;
use super::series::Series;

const RATIOS: [i128; 14] = [2, 3, 4, 5, 6, 8, 10, 15, 20, 25, 30, 40, 50, 100];
const DAYS_APART: i32 = 7;

/// Sets the flags; a calm series (no close moving by half) has no jump to look for.
pub(crate) fn flag_contradictions(series: &Series<'_>, is_calm: bool, flags: &mut BTreeSet<String>) {
    if !is_calm && has_jump(series) {
        flags.insert("price_jump_without_split".to_owned());
    }
    if has_silent_split(series) {
        flags.insert("split_not_in_price".to_owned());
    }
}

fn has_jump(series: &Series<'_>) -> bool {
    let (days, closes) = (&series.bars.day, &series.bars.close);
    (1..closes.len()).any(|index| {
        let (before, after) = (closes[index - 1], closes[index]);
        days[index] - days[index - 1] <= DAYS_APART
            && is_known_ratio(i128::from(before.max(after)), i128::from(before.min(after)))
            && series.splits.between(series.date(index - 1), series.date(index)).is_one()
    })
}

fn is_known_ratio(large: i128, small: i128) -> bool {
    RATIOS.iter().any(|ratio| small * ratio * 97 <= large * 100 && large * 100 <= small * ratio * 103)
}

fn has_silent_split(series: &Series<'_>) -> bool {
    let threshold = Decimal::new(15, 1);
    series.splits.events().iter().any(|split| {
        let expected = split.ratio.factor();
        let large = expected >= threshold
            || quotient(Decimal::ONE, expected).is_some_and(|inverse| inverse >= threshold);
        let Some((before, after)) =
            series.before(split.ex_date).zip(series.at_or_after(split.ex_date)).filter(|_| large)
        else {
            return false;
        };
        if series.bars.day[after] - series.bars.day[before] > DAYS_APART {
            return false;
        }
        let moved =
            quotient(series.close(after), series.close(before)).and_then(|moved| moved.checked_mul(moved));
        moved.is_some_and(
            |squared| if expected < Decimal::ONE { squared > expected } else { squared < expected },
        )
    })
}
