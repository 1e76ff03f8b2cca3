//! Price jumps that look like a missing split (R30). A jump sets the flag `price_jump_without_split`.
//!
//! Two successive closes are a jump if all these conditions are met:
//! - The closes are at most 7 days apart.
//! - No split or price-only action (R35) lies between the closes.
//! - The ratio of the closes is within 3 % of a known ratio.
//! - Distributions do not explain the change. They explain it if the closes, adjusted for them, are no longer a jump.
//!
//! Known ratios are 2, 3, 4, 5, 6, 8, 10, 15, 20, 25, 30, 40, 50 and 100. The ratios of the security's own splits and
//! price-only actions are also known. They must be at least 3 for 2. All ratios count in both directions: 2 for 3 is as
//! large as 3 for 2.

use rust_decimal::Decimal;

use super::ex_dates::ExDateEvents;
use crate::metrics::arithmetic::quotient;
use crate::metrics::prices::adjustment::detectable_factor;
use crate::metrics::prices::series::PriceSeries;
use crate::row::{Flag, Flags};

/// Usual split ratios, used in both directions. The security's own split ratios from 3:2 on are used too.
const RATIOS: [i128; 14] = [2, 3, 4, 5, 6, 8, 10, 15, 20, 25, 30, 40, 50, 100];
const DAYS_APART: i32 = 7;
/// Multiplier that converts adjusted closes to integers. The integers keep six decimal places.
const SCALE: Decimal = Decimal::from_parts(1_000_000, 0, 0, false, 0);
/// Smallest ratio of two closes that can be a jump, in hundredths: 1.45. It is the smallest split ratio (1.5) less the
/// tolerance of 3 %, rounded down.
const LEAST_JUMP: i128 = 145;

/// Sets the flag if the prices contain a jump. `large_moves` are the indexes of closes far from the previous close,
/// which include every jump.
pub(crate) fn flag_jumps(
    series: &PriceSeries<'_>,
    ex_days: &[ExDateEvents],
    large_moves: &[usize],
    flags: &mut Flags,
) {
    let own: Vec<Decimal> =
        series.splits.events().iter().filter_map(|split| detectable_factor(split.ratio)).collect();
    let (days, closes) = (&series.bars.day, &series.bars.close);
    let has_jump = large_moves.iter().copied().any(|index| {
        let (before, after) = (closes[index - 1], closes[index]);
        days[index] - days[index - 1] <= DAYS_APART
            && is_known_ratio(before.max(after), before.min(after), &own)
            && series.splits.price_ratio_between(series.date(index - 1), series.date(index)).is_one()
            && !is_explained(series, ex_days, index, &own)
    });
    flags.set_if(Flag::PriceJumpWithoutSplit, has_jump);
}

/// True if distributions explain the jump at `index`. The previous close is adjusted for the distributions between the
/// two closes. The jump is explained if the adjusted closes show no jump.
fn is_explained(series: &PriceSeries<'_>, ex_days: &[ExDateEvents], index: usize, own: &[Decimal]) -> bool {
    let (from, to) = (series.date(index - 1), series.date(index));
    let between = ex_days.iter().filter(|day| from < day.ex_date && day.ex_date <= to);
    let mut close = series.close(index - 1);
    for day in between {
        close = close.saturating_mul(day.factor());
    }
    let scaled = |value: Decimal| i64::try_from(value.saturating_mul(SCALE).trunc()).ok();
    match (scaled(close), scaled(series.close(index))) {
        (Some(before), Some(after)) if close != series.close(index - 1) => {
            !is_known_ratio(before.max(after), before.min(after), own)
        }
        _ => false,
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bars::{Bar, BarVersion, Bars, MISSING};
    use crate::day::day_number;
    use crate::metrics::prices::adjustment::{Ratio, SplitEvent, Splits};

    /// Indexes of all closes except the first. `flag_jumps` must ignore the small moves among them.
    fn all_moves(bars: &Bars) -> Vec<usize> {
        (1..bars.len()).collect()
    }

    /// Codes of the flags that `flag_jumps` sets for the closes and splits. Days are counted from 2024-01-02.
    fn found(closes: &[(i32, i64)], splits: &[(i32, Ratio)]) -> Vec<String> {
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
        let event =
            |(day, ratio): &(i32, Ratio)| SplitEvent::of_shares(crate::day::date_of(first + day), *ratio);
        let splits = Splits::new(splits.iter().map(event).collect());
        let mut flags = Flags::default();
        flag_jumps(&PriceSeries::new(&bars, &splits), &[], &all_moves(&bars), &mut flags);
        flags.codes()
    }

    fn check(closes: &[i64], split: Option<(i32, Ratio)>, expected: &[&str]) {
        let closes: Vec<(i32, i64)> = (0..).zip(closes.iter().copied()).collect();
        assert_eq!(found(&closes, split.as_slice()), expected, "{closes:?}");
    }

    fn of(from: i64, to: i64) -> Ratio {
        Ratio { from: from.into(), to: to.into() }
    }

    #[test]
    fn a_jump_is_within_three_percent_of_a_ratio() {
        let jumped = |before, after, splits: &[(i32, Ratio)]| {
            found(&[(0, before), (1, after)], splits) == ["price_jump_without_split"]
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
        // The security's own split ratio is known if it is at least 3 for 2.
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
        // If a split or more than a week lies between two closes, their difference is not a jump.
        assert!(!jumped(2000, 1000, &[(1, of(1, 2))]));
        assert!(jumped(2000, 1000, &[(0, of(1, 2))]) && jumped(2000, 1000, &[(2, of(1, 2))]));
        assert_eq!(found(&[(0, 2000), (7, 1000)], &[]).len(), 1);
        assert!(found(&[(0, 2000), (8, 1000)], &[]).is_empty());
    }

    #[test]
    fn prices_and_splits_that_contradict_each_other() {
        let ratio = |from: Decimal, to: Decimal| Ratio { from, to };
        let (halved, odd) = (ratio(dec!(1), dec!(2)), ratio(dec!(1), dec!(0.4406)));
        check(&[100, 101, 50, 51], None, &["price_jump_without_split"]);
        check(&[100, 101, 50, 51], Some((2, halved)), &[]);
        check(&[100, 101, 102, 103], Some((2, halved)), &[]);
        check(&[100, 101, 46, 45], None, &[]);
        check(&[53, 120, 120, 272], Some((3, odd)), &["price_jump_without_split"]);
        check(&[53, 53, 120, 272], None, &[]);
    }

    #[test]
    fn a_distribution_explains_a_jump() {
        let first: chrono::NaiveDate = "2024-01-02".parse().unwrap();
        let mut bars = Bars { versions: vec![BarVersion::UNKNOWN], ..Bars::default() };
        for (day, close) in (0..).zip([1000, 1000, 500, 500]) {
            let (open, high, low, vwap, trade_count) = (MISSING, MISSING, MISSING, MISSING, MISSING);
            let day = day_number(first) + day;
            bars.push(Bar { day, open, high, low, close, volume: 1, vwap, trade_count }, 0);
        }
        let splits = Splits::default();
        let jumps = |after: u64, factor: Decimal| {
            let day = ExDateEvents {
                ex_date: first + chrono::Days::new(after),
                split: Ratio::ONE,
                price_only: Ratio::ONE,
                cash: dec!(0),
                value: dec!(0),
                close_before: None,
                dividend_factor: Some(factor),
                foreign: false,
            };
            let mut flags = Flags::default();
            flag_jumps(&PriceSeries::new(&bars, &splits), &[day], &all_moves(&bars), &mut flags);
            flags.has(Flag::PriceJumpWithoutSplit)
        };
        assert!(!jumps(2, dec!(0.5)) && jumps(1, dec!(0.5)) && jumps(3, dec!(0.5)));
        assert!(jumps(2, dec!(0.99)));
    }
}
