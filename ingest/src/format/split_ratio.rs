//! Split ratios written as one number: 7.0 is 1 to 7, 0.1 is 10 to 1, 1.5 is 2 to 3.

use rust_decimal::Decimal;

/// Largest denominator of a truncated ratio, such as 0.3333.
const MAX_CUT_DENOMINATOR: i64 = 20;

/// Old and new shares in the smallest whole numbers; `None` for an invalid ratio.
pub(super) fn whole_shares(ratio: Decimal) -> Option<(Decimal, Decimal)> {
    if ratio <= Decimal::ZERO {
        return None;
    }
    let ratio = ratio.normalize();
    let (new, old) = (ratio.mantissa(), 10i128.pow(ratio.scale()));
    let divisor = greatest_common(new, old);
    let exact = (old / divisor, new / divisor);
    let (from, to) = if ratio.scale() >= 4 { cut_short(ratio).unwrap_or(exact) } else { exact };
    Some((Decimal::from(from), Decimal::from(to)))
}

/// Parses a ratio written as `4:1` (new to old) or as one number.
pub(super) fn parse_ratio(text: &str) -> Option<(Decimal, Decimal)> {
    match text.split_once([':', '/']) {
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

/// Fraction of small numbers from which a number with many digits was truncated or rounded.
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
            ("1.333333", 3, 4),
            ("1.0027455", 2_000_000, 2_005_491),
            ("0.4406", 5000, 2203),
            ("4:1", 1, 4),
            ("1:8", 8, 1),
        ] {
            assert_eq!(parse_ratio(text), Some((Decimal::from(from), Decimal::from(to))), "{text}");
        }
        for text in ["0", "-2", "x", "4:0", ":"] {
            assert_eq!(parse_ratio(text), None, "{text}");
        }
    }
}
