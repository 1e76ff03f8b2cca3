//! Consistency check of prices and splits; sets two flags (R30).
//!
//! `price_jump_without_split`: closes at most 7 days apart differ by a known split ratio, within 3 %, without
//! a split between them. Known ratios are 2, 3, 4, 5, 6, 8, 10, 15, 20, 25, 30, 40, 50, 100 and their
//! inverses, and those of the security's own splits from 3 for 2.
//!
//! `split_not_in_price`: over a split of at least 3 for 2 the raw close moved less than half way to from/to,
//! on a ratio scale.
//!
//! Prices and splits are not changed.

use rust_decimal::Decimal;

use super::adjustment::Ratio;
use super::series::PriceSeries;
use crate::metrics::arithmetic::quotient;
use crate::row::{Flag, Flags};

const RATIOS: [i128; 14] = [2, 3, 4, 5, 6, 8, 10, 15, 20, 25, 30, 40, 50, 100];
const DAYS_APART: i32 = 7;
/// Lower bound of all known ratios less 3 %, in hundredths. It spares most sessions a division.
const LEAST_JUMP: i128 = 145;

/// Sets the flags. A calm series has no close that moves by three eighths, so it needs no search for jumps.
pub(crate) fn flag_contradictions(series: &PriceSeries<'_>, is_calm: bool, flags: &mut Flags) {
    if !is_calm && has_jump(series) {
        flags.set(Flag::PriceJumpWithoutSplit);
    }
    if has_silent_split(series) {
        flags.set(Flag::SplitNotInPrice);
    }
}

fn has_jump(series: &PriceSeries<'_>) -> bool {
    let own: Vec<Decimal> = series.splits.events().iter().filter_map(|split| size_of(split.ratio)).collect();
    let (days, closes) = (&series.bars.day, &series.bars.close);
    (1..closes.len()).any(|index| {
        let (before, after) = (closes[index - 1], closes[index]);
        days[index] - days[index - 1] <= DAYS_APART
            && is_known_ratio(before.max(after), before.min(after), &own)
            && series.splits.between(series.date(index - 1), series.date(index)).is_one()
    })
}

fn is_known_ratio(large: i64, small: i64, own: &[Decimal]) -> bool {
    let (wide, narrow) = (i128::from(large), i128::from(small));
    if wide * 100 < narrow * LEAST_JUMP {
        return false;
    }
    let common =
        RATIOS.iter().any(|ratio| narrow * ratio * 97 <= wide * 100 && wide * 100 <= narrow * ratio * 103);
    common
        || quotient(large.into(), small.into()).is_some_and(|moved| {
            own.iter().any(|ratio| {
                let apart = moved.checked_sub(*ratio).map(|apart| apart.abs());
                apart.is_some_and(|apart| apart <= ratio.saturating_mul(Decimal::new(3, 2)))
            })
        })
}

/// Factor by which a split changes prices, at least 1; `None` under 3 for 2, which is not detectable.
fn size_of(ratio: Ratio) -> Option<Decimal> {
    let (more, fewer) = (ratio.from.max(ratio.to), ratio.from.min(ratio.to));
    quotient(more, fewer).filter(|size| *size >= Decimal::new(15, 1))
}

fn has_silent_split(series: &PriceSeries<'_>) -> bool {
    let mut large = series.splits.events().iter().filter(|split| size_of(split.ratio).is_some());
    large.any(|split| {
        let expected = split.ratio.factor();
        let Some((before, after)) = series.before(split.ex_date).zip(series.at_or_after(split.ex_date))
        else {
            return false;
        };
        if series.bars.day[after] - series.bars.day[before] > DAYS_APART {
            return false;
        }
        let moved =
            quotient(series.close(after), series.close(before)).and_then(|moved| moved.checked_mul(moved));
        // Squared move on the side of 1: the price moved less than half way.
        moved.is_some_and(|squared| squared.cmp(&expected) == Decimal::ONE.cmp(&expected))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bars::{Bar, BarVersion, Bars, MISSING};
    use crate::day::day_number;
    use crate::metrics::prices::adjustment::{SplitEvent, Splits};

    /// Closes on days counted from 2024-01-02, and splits on such days.
    fn found(closes: &[(i32, i64)], splits: &[(i32, Ratio)], is_calm: bool) -> Vec<String> {
        let first = day_number("2024-01-02".parse().unwrap());
        let mut bars = Bars { versions: vec![BarVersion::UNKNOWN], ..Bars::default() };
        for (day, close) in closes {
            let missing = MISSING;
            let (open, high, low, vwap, trade_count) = (missing, missing, missing, missing, missing);
            bars.push(
                Bar { day: first + day, open, high, low, close: *close, volume: 1, vwap, trade_count },
                0,
            );
        }
        let event = |(day, ratio): &(i32, Ratio)| SplitEvent {
            ex_date: crate::day::date_of(first + day),
            ratio: *ratio,
        };
        let splits = Splits::new(splits.iter().map(event).collect());
        let mut flags = Flags::default();
        flag_contradictions(&PriceSeries::new(&bars, &splits), is_calm, &mut flags);
        flags.codes()
    }

    fn check(closes: &[i64], split: Option<(i32, Ratio)>, expected: &[&str]) {
        let closes: Vec<(i32, i64)> = (0..).zip(closes.iter().copied()).collect();
        assert_eq!(found(&closes, split.as_slice(), false), expected, "{closes:?}");
    }

    fn of(from: i64, to: i64) -> Ratio {
        Ratio { from: from.into(), to: to.into() }
    }

    #[test]
    fn a_jump_is_within_three_percent_of_a_ratio() {
        let jumped = |before, after, splits: &[(i32, Ratio)]| {
            found(&[(0, before), (1, after)], splits, false) == ["price_jump_without_split"]
        };
        for (closes, expected) in [
            ((1000, 1940), true),
            ((1000, 1939), false),
            ((1000, 2060), true),
            ((1000, 2061), false),
            ((1000, 97_000), true),
            ((1000, 103_001), false),
        ] {
            assert_eq!(
                [jumped(closes.0, closes.1, &[]), jumped(closes.1, closes.0, &[])],
                [expected; 2],
                "{closes:?}"
            );
        }
        // A ratio of the security's own, from 3 for 2 on.
        let own = |from, to, close| jumped(10_000, close, &[(90, of(from, to))]);
        assert_eq!(
            [14_549, 14_550, 15_450, 15_451].map(|close| own(2, 3, close)),
            [false, true, true, false]
        );
        assert_eq!(
            [14_549, 14_550, 15_450, 15_451].map(|close| own(3, 2, close)),
            [false, true, true, false]
        );
        assert!(!own(100, 147, 14_700) && own(100, 150, 14_700));
        // Not over a split, and not over more than a week.
        assert!(!jumped(2000, 1000, &[(1, of(1, 2))]));
        assert!(jumped(2000, 1000, &[(0, of(1, 2))]) && jumped(2000, 1000, &[(2, of(1, 2))]));
        assert_eq!(found(&[(0, 2000), (7, 1000)], &[], false).len(), 1);
        assert!(found(&[(0, 2000), (8, 1000)], &[], false).is_empty());
        assert!(found(&[(0, 2000), (1, 1000)], &[], true).is_empty());
    }

    #[test]
    fn a_split_shows_in_the_price_at_least_half() {
        let silent = |before: i64, after: i64, split| {
            found(&[(0, before), (1, after)], &[(1, split)], false) == ["split_not_in_price"]
        };
        assert_eq!([70, 71, 100].map(|after| silent(100, after, of(1, 2))), [false, true, true]);
        assert_eq!([142, 141, 100].map(|after| silent(100, after, of(2, 1))), [false, true, true]);
        // Half of the way is enough, and an unchanged price is none of it.
        assert_eq!([50, 51, 100].map(|after| silent(100, after, of(1, 4))), [false, true, true]);
        assert_eq!([200, 199, 100].map(|after| silent(100, after, of(4, 1))), [false, true, true]);
        // Splits under 3 for 2 are lost among the price's own moves.
        assert!(silent(100, 100, of(2, 3)) && silent(100, 100, of(3, 2)));
        assert!(!silent(100, 100, of(5, 7)) && !silent(100, 100, of(7, 5)));
        let apart = |days| found(&[(0, 100), (days, 100)], &[(3, of(1, 2))], false);
        assert_eq!((apart(7).len(), apart(8).len()), (1, 0));
        assert!(found(&[(0, 100)], &[(1, of(1, 2))], false).is_empty());
        assert!(found(&[(1, 100)], &[(1, of(1, 2))], false).is_empty());
    }

    #[test]
    fn prices_and_splits_that_contradict_each_other() {
        let ratio = |from: Decimal, to: Decimal| Ratio { from, to };
        let (halved, odd) = (ratio(dec!(1), dec!(2)), ratio(dec!(1), dec!(0.4406)));
        check(&[100, 101, 50, 51], None, &["price_jump_without_split"]);
        check(&[100, 101, 50, 51], Some((2, halved)), &[]);
        check(&[100, 101, 102, 103], Some((2, halved)), &["split_not_in_price"]);
        check(&[100, 101, 46, 45], None, &[]);
        check(&[53, 120, 120, 272], Some((3, odd)), &["price_jump_without_split"]);
        check(&[53, 53, 120, 272], None, &[]);
    }
}
