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
