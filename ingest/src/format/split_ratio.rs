//! Split ratios written as one number of new shares per old share: 7.0 is 1 old to 7 new shares, and 0.1 is 10 to 1. A
//! rounded 1/n is n to 1, if only one n fits.

use rust_decimal::{Decimal, RoundingStrategy};

/// Maximum denominator of a fraction that is recognized from its first digits, such as 2/3 from 0.6666. Fractions 1/n
/// have no limit.
const MAX_CUT_DENOMINATOR: i64 = 20;

/// Old and new shares as the smallest whole numbers; `None` for an invalid ratio.
pub(super) fn whole_shares(ratio: Decimal) -> Option<(Decimal, Decimal)> {
    if ratio <= Decimal::ZERO {
        return None;
    }
    if let Some(old) = unit_fraction(ratio) {
        return Some((old, Decimal::ONE));
    }
    let ratio = ratio.normalize();
    let (new, old) = (ratio.mantissa(), 10i128.pow(ratio.scale()));
    let divisor = greatest_common(new, old);
    let exact = (old / divisor, new / divisor);
    let (from, to) = if ratio.scale() >= 4 { cut_short(ratio).unwrap_or(exact) } else { exact };
    Some((Decimal::from(from), Decimal::from(to)))
}

/// Parses a ratio of new to old shares, such as `4:1`, `4 for 1` or `4.0`. Returns the old shares, then the new shares.
pub(super) fn parse_ratio(text: &str) -> Option<(Decimal, Decimal)> {
    let sides =
        text.split_once([':', '/']).or_else(|| text.split_once(" for ")).or_else(|| text.split_once("-for-"));
    match sides {
        Some((to, from)) => {
            let number = |text: &str| {
                market::decimal::parse_decimal(text.trim())
                    .ok()
                    .map(|p| p.value)
                    .filter(|v| *v > Decimal::ZERO)
            };
            Some((number(from)?, number(to)?))
        }
        None => whole_shares(market::decimal::parse_decimal(text).ok()?.value),
    }
}

/// Number n of old shares per new share. The ratio must be exactly 1/n, or fit only one n after rounding.
fn unit_fraction(ratio: Decimal) -> Option<Decimal> {
    let rounds = |old: Decimal| {
        let quotient = Decimal::ONE.checked_div(old)?;
        Some(quotient.round_dp_with_strategy(ratio.scale(), RoundingStrategy::MidpointAwayFromZero) == ratio)
    };
    let old = Decimal::ONE.checked_div(ratio)?.round();
    let is_exact = old.checked_mul(ratio) == Some(Decimal::ONE);
    let is_only =
        rounds(old)? && !rounds(old + Decimal::ONE)? && (old <= Decimal::ONE || !rounds(old - Decimal::ONE)?);
    (ratio < Decimal::ONE && (is_exact || is_only)).then_some(old)
}

/// Old and new shares of a truncated or rounded fraction: 3 and 2 for 0.6666. Only denominators up to
/// [`MAX_CUT_DENOMINATOR`] are tried.
fn cut_short(ratio: Decimal) -> Option<(i128, i128)> {
    let step = Decimal::new(1, ratio.scale());
    (1..=MAX_CUT_DENOMINATOR).find_map(|from| {
        let to = (ratio * Decimal::from(from)).round();
        let distance = (to / Decimal::from(from) - ratio).abs();
        (to > Decimal::ZERO && distance < step).then(|| (i128::from(from), to.mantissa()))
    })
}

fn greatest_common(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_small_whole_numbers() {
        for (text, from, to) in [
            ("7.0", 1, 7),
            ("2", 1, 2),
            ("0.1", 10, 1),
            ("1.5", 2, 3),
            ("0.3333", 3, 1),
            ("0.066667", 15, 1),
            ("0.033333", 30, 1),
            ("0.0333", 30, 1),
            ("0.33", 3, 1),
            ("0.25", 4, 1),
            ("0.05", 20, 1),
            ("0.001", 1000, 1),
            ("0.04", 25, 1),
            ("0.022222", 45, 1),
            // Several reverse splits round to these ratios.
            ("0.3", 10, 3),
            ("0.07", 100, 7),
            ("0.9", 10, 9),
            ("0.6667", 3, 2),
            ("1.333333", 3, 4),
            ("1.0027455", 2_000_000, 2_005_491),
            ("0.4406", 5000, 2203),
            ("4:1", 1, 4),
            ("3 for 2", 2, 3),
            ("1-for-10", 10, 1),
            ("1:8", 8, 1),
        ] {
            assert_eq!(parse_ratio(text), Some((Decimal::from(from), Decimal::from(to))), "{text}");
        }
        for text in ["0", "-2", "x", "4:0", ":"] {
            assert_eq!(parse_ratio(text), None, "{text}");
        }
    }
}
