//! Types of splits: changes of the share count, and price-only actions such as spin-offs (R35).
//!
//! If the feed gives the type of a split, this type is used. Without a type, the ratio decides. A feed may publish a
//! spin-off as a split with an odd ratio such as 1281:1000. No board chooses such a ratio for a split. A split without
//! a type is a spin-off if all these conditions are met:
//! - Size: the ratio is at most `spin_off.largest_ratio`, in either direction.
//! - Odd terms: in lowest terms, both numbers exceed 50. The number of old shares is at least 100.
//! - Exact decimal: the ratio is not the rounded decimal of a simple ratio. For example, 1.333333 is 4:3.
//! - Single event: the ratio does not recur. A ratio recurs in another split without a type, at least
//!   180 days away. For example, a stock dividend of 103:100 every year is not a spin-off.
//! - Share count: the reported share count did not change by about the ratio.
//!
//! The second condition is weaker if another action of the same source is a spin-off. Both numbers must then exceed 20. The number of old shares has no minimum. For example, 26:25 is then a spin-off.
//! Source: this service chose the weaker condition.

use rust_decimal::Decimal;

use super::{MergedSplit, is_known};
use crate::event::Action;
use crate::history::History;
use crate::metrics::arithmetic::{quotient, within_factor};
use crate::metrics::merge::as_of::AsOfView;
use crate::metrics::prices::adjustment::{Ratio, lowest_terms};
use crate::metrics::rules::SpinOffRules;
use crate::row::SplitType;

/// Largest denominator of a simple ratio. Rounded decimals of simple ratios are recognized, for example 1.142857 for
/// 8:7.
const ROUNDED_TERM: i128 = 7;
/// Maximum number of days between a split and the reported share counts that are compared.
const REPORTED_WITHIN: i64 = 400;
/// Both terms of a spin-off's ratio exceed this.
const LEAST_TERM: i128 = 50;
/// Replacement for [`LEAST_TERM`] and [`LEAST_OLD_SHARES`] if the source has another spin-off of the security.
const LEAST_TERM_OF_SIBLING: i128 = 20;
const LEAST_OLD_SHARES: i128 = 100;
/// Minimum number of days between splits of equal ratio that are not spin-offs.
const REPEAT_DAYS: i64 = 180;

/// Sets the type of every split: change of the share count, or price-only action.
pub(crate) fn classify(
    splits: &mut [MergedSplit],
    history: &History,
    known: &AsOfView,
    rules: &SpinOffRules,
) {
    let mut readable = Vec::new();
    for (place, split) in splits.iter_mut().enumerate() {
        let record = &history.splits[split.index].record;
        match declared_type(record.r#type.as_deref()) {
            Some(DeclaredType::PriceOnly(price_only)) => split.r#type = price_only,
            Some(DeclaredType::Shares) => {}
            None if split.cancelled || !is_known(record, known) => {}
            None => readable.push(place),
        }
    }
    for is_sibling in [false, true] {
        let read: Vec<usize> = readable
            .iter()
            .copied()
            .filter(|place| {
                let (split, source) = (&splits[*place], source_of(splits, history, *place));
                let has_sibling = || {
                    (0..splits.len()).any(|other| {
                        other != *place
                            && splits[other].r#type == SplitType::SpinOff
                            && !splits[other].cancelled
                            && is_known(&history.splits[splits[other].index].record, known)
                            && source_of(splits, history, other) == source
                    })
                };
                !split.r#type.is_price_only()
                    && has_odd_terms(split.ratio, is_sibling, rules)
                    && (!is_sibling || has_sibling())
                    // An odd ratio such as 103:100 can also be a stock dividend of every year.
                    && !is_repeated(splits, &readable, *place)
                    && !has_share_count_moved(history, split, known)
            })
            .collect();
        for place in read {
            splits[place].r#type = SplitType::SpinOff;
        }
    }
}

fn source_of<'a>(splits: &[MergedSplit], history: &'a History, place: usize) -> &'a str {
    &history.splits[splits[place].index].source
}

/// Effect of a split according to the vendor's type of the split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeclaredType {
    Shares,
    PriceOnly(SplitType),
}

/// True if the vendor's type of a split says that the action changes only prices.
pub(crate) fn is_declared_price_only(word: Option<&str>) -> bool {
    matches!(declared_type(word), Some(DeclaredType::PriceOnly(_)))
}

fn declared_type(word: Option<&str>) -> Option<DeclaredType> {
    let letters: String =
        word?.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect();
    Some(match letters.as_str() {
        "" | "unknown" | "other" => return None,
        "spinoff" | "spinoffs" | "so" | "demerger" => DeclaredType::PriceOnly(SplitType::SpinOff),
        "rights" | "rightsissue" | "rightsoffering" | "rightsdistribution" => {
            DeclaredType::PriceOnly(SplitType::Rights)
        }
        "classdistribution" => DeclaredType::PriceOnly(SplitType::ClassDistribution),
        _ => DeclaredType::Shares,
    })
}

/// True if the ratio is too odd for a split that a board chooses. The limits are weaker if `is_sibling` is true: the
/// source has another spin-off.
fn has_odd_terms(ratio: Ratio, is_sibling: bool, rules: &SpinOffRules) -> bool {
    let Some((from, to)) = lowest_terms(ratio) else { return false };
    within_factor(ratio.from, ratio.to, rules.largest_ratio)
        && from.min(to) > if is_sibling { LEAST_TERM_OF_SIBLING } else { LEAST_TERM }
        && (is_sibling || from >= LEAST_OLD_SHARES)
        && !is_rounded(from, to)
}

/// True if `to` / `from` is a simple ratio that was rounded to a decimal. For example, 1.333333 is 4/3, rounded. The
/// rounding error must be at most half a unit of the last digit.
fn is_rounded(from: i128, to: i128) -> bool {
    (1..=ROUNDED_TERM).any(|term| {
        let near = |a: i128, b: i128| {
            let product = a.saturating_mul(term);
            let rest = product.rem_euclid(b);
            2 * rest.min(b - rest) <= term
        };
        near(to, from)
    })
}

/// True if another split of the same ratio is at least [`REPEAT_DAYS`] away. `readable` contains the indexes of
/// the splits without a vendor's type. Only these splits are compared.
fn is_repeated(splits: &[MergedSplit], readable: &[usize], place: usize) -> bool {
    let split = &splits[place];
    readable.iter().filter(|other| **other != place).map(|other| &splits[*other]).any(|other| {
        (other.ex_date - split.ex_date).num_days().abs() >= REPEAT_DAYS
            && other.ratio.then(split.ratio.inverse()).is_one()
    })
}

/// True if the reported share count changed at the split, by about the split's ratio. [`has_moved_with`] defines the
/// tolerance.
pub(crate) fn has_share_count_moved(history: &History, split: &MergedSplit, known: &AsOfView) -> bool {
    let counts = history.fundamentals.iter().filter(|row| row.action == Action::Put).filter_map(|row| {
        let date = row.record.shares_as_of.unwrap_or(row.record.as_of);
        let count = row.record.shares_outstanding.filter(|count| *count > Decimal::ZERO)?;
        let near = (date - split.ex_date).num_days().abs() <= REPORTED_WITHIN && date <= known.as_of;
        near.then_some((date, row.version(0), count))
    });
    let before =
        counts.clone().filter(|count| count.0 < split.ex_date).max_by_key(|count| (count.0, count.1));
    let after = counts
        .filter(|count| count.0 >= split.ex_date)
        .min_by_key(|count| (count.0, std::cmp::Reverse(count.1)));
    let (Some((.., before)), Some((.., after))) = (before, after) else { return false };
    let Some(moved) = quotient(after, before) else { return false };
    has_moved_with(moved, split.ratio.inverse().factor())
}

/// True if a value changed by about the expected factor: `moved` is between `expected`^0.5 and `expected`^1.5.
pub(crate) fn has_moved_with(moved: Decimal, expected: Decimal) -> bool {
    let inverse = |value: Decimal| quotient(Decimal::ONE, value);
    let upward = if expected >= Decimal::ONE {
        Some((moved, expected))
    } else {
        inverse(moved).zip(inverse(expected))
    };
    let Some((moved, expected)) = upward else { return false };
    let Some(squared) = moved.checked_mul(moved) else { return false };
    let cube = expected.checked_mul(expected).and_then(|square| square.checked_mul(expected));
    squared > expected && cube.is_none_or(|cube| squared < cube)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::rules::Rules;

    const RULES: SpinOffRules = Rules::DEFAULT.spin_off;

    fn ratio(from: Decimal, to: Decimal) -> Ratio {
        Ratio { from, to }
    }

    #[test]
    fn odd_ratios_are_spin_offs_and_round_ones_splits() {
        let odd = |from: Decimal, to: Decimal| has_odd_terms(ratio(from, to), false, &RULES);
        for (from, to) in [
            (dec!(1000), dec!(1281)),
            (dec!(4798), dec!(10000)),
            (dec!(1), dec!(1.253)),
            (dec!(1000), dec!(2376)),
            (dec!(100), dec!(103)),
            (dec!(1281), dec!(1000)),
        ] {
            assert!(odd(from, to), "{from} {to}");
        }
        for (from, to) in [
            (dec!(1), dec!(2)),
            (dec!(5), dec!(4)),
            (dec!(11), dec!(6)),
            (dec!(100), dec!(105)),
            (dec!(31), dec!(1000)),
            (dec!(100), dec!(104)),
            (dec!(1000), dec!(1250)),
            (dec!(64), dec!(67)),
            (dec!(1000), dec!(2601)),
            // 4:3, 8:7, 3:2 reverse and 7:6 as decimals.
            (dec!(1), dec!(1.333333)),
            (dec!(1), dec!(1.142857)),
            (dec!(1), dec!(0.666667)),
            (dec!(0.857143), dec!(1)),
        ] {
            assert!(!odd(from, to), "{from} {to}");
        }
        let sibling = |from, to| has_odd_terms(ratio(from, to), true, &RULES);
        assert!(sibling(dec!(100), dec!(104)) && !sibling(dec!(100), dec!(105)));
    }

    #[test]
    fn words_of_feeds() {
        for (word, expected) in [
            ("spin_off", DeclaredType::PriceOnly(SplitType::SpinOff)),
            ("Spin-Off", DeclaredType::PriceOnly(SplitType::SpinOff)),
            ("SPINOFF", DeclaredType::PriceOnly(SplitType::SpinOff)),
            ("rights issue", DeclaredType::PriceOnly(SplitType::Rights)),
            ("class_distribution", DeclaredType::PriceOnly(SplitType::ClassDistribution)),
            ("forward", DeclaredType::Shares),
            ("stock-split", DeclaredType::Shares),
        ] {
            assert_eq!(declared_type(Some(word)), Some(expected), "{word}");
        }
        assert_eq!([None, Some(""), Some("unknown")].map(declared_type), [None; 3]);
    }

    #[test]
    fn a_share_count_moves_with_a_split() {
        let check = |moved, expected, result| assert_eq!(has_moved_with(moved, expected), result, "{moved}");
        check(dec!(1.281), dec!(1.281), true);
        check(dec!(1.1), dec!(1.281), false);
        check(dec!(1.5), dec!(1.281), false);
        check(dec!(0.5), dec!(0.5), true);
        check(dec!(0.8), dec!(0.5), false);
        check(dec!(2), dec!(0.5), false);
    }
}
